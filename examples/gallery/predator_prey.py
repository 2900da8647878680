"""Hares and lynxes: the equations of Lotka and Volterra conserve a quantity with logarithms, whose value is unknown."""

import matplotlib.pyplot as plt
import numpy as np
from look import PARTS, band, dots, save
from scipy.integrate import solve_ivp

import sumgp


def animals(t):
    """Hares and lynxes at times t."""
    return solve_ivp(lambda _, s: [s[0] * (1 - s[1]), s[1] * (s[0] - 1)], (0, 12), [1.0, 2.0], t_eval=t, rtol=1e-8).y.T


rng = np.random.default_rng(3)
t = np.linspace(0, 12, 32)
measured = animals(t) + rng.normal(0, 0.08, (32, 2))
measured[8:17, 1] = np.nan  # lynxes were not counted for a while

names = {"outputs": ["hares", "lynxes"], "inputs": ["t"], "uncertainty": "plug-in"}
law = "hares - log(hares) + lynxes - log(lynxes) = V"
gp = sumgp.ConstrainedGP(law, constants={"V": "unknown"}, **names).fit(t, measured)
plain = sumgp.ConstrainedGP(None, **names).fit(t, measured)

x = np.linspace(0, 12, 120)
for name, model in [("no law", plain), ("with the law", gp)]:
    print(f"{name}: error {np.sqrt(np.mean((model.predict(x) - animals(x)) ** 2)):.3f}")
posterior = gp.posterior(x)
figure, axes = plt.subplots(figsize=(4.2, 2.8))
for column, name in enumerate(["hares", "lynxes"]):
    axes.plot(x, animals(x)[:, column], "--", color=PARTS[column], linewidth=1)
    band(axes, x, posterior, column, PARTS[column], name)
    dots(axes, t, measured[:, column], PARTS[column])
axes.set(xlabel="t", ylabel="number (scaled)", ylim=(0, 2.6))
axes.legend(fontsize=8, loc="upper center", ncols=2)
save(figure, "predator_prey")
