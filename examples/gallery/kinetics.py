"""Mass balance of a reaction: a turns into b, b into c, and nothing is lost; c was never measured."""

import matplotlib.pyplot as plt
import numpy as np
from look import DATA, PARTS, band, dots, save

import sumgp


def amounts(t):
    """Amounts of a, b and c at times t, from 1 of a; rates 1 and 0.5."""
    a = np.exp(-t)
    b = 2 * (np.exp(-0.5 * t) - np.exp(-t))
    return np.column_stack([a, b, 1 - a - b])


rng = np.random.default_rng(0)
t = np.linspace(0, 8, 18)
measured = amounts(t) + rng.normal(0, 0.02, (18, 3))
measured[:, 2] = np.nan  # the product cannot be seen

names = ["a", "b", "c"]
gp = sumgp.ConstrainedGP("a + b + c = 1", outputs=names, inputs=["t"], uncertainty="plug-in").fit(t, measured)

x = np.linspace(0, 8, 100)
posterior = gp.posterior(x)
print(f"error of the amount never measured: {np.sqrt(np.mean((posterior.mean[:, 2] - amounts(x)[:, 2]) ** 2)):.3f}")
figure, axes = plt.subplots(figsize=(4.2, 2.8))
axes.plot(x, amounts(x)[:, 2], "--", color=DATA, linewidth=1)
for column, name in enumerate(names):
    band(axes, x, posterior, column, PARTS[column], name if column < 2 else "c, never measured")
    dots(axes, t, measured[:, column], PARTS[column])
axes.set(xlabel="time", ylabel="amount")
axes.legend(fontsize=8)
save(figure, "kinetics")
