"""Shares that sum to 100 %: three minerals along a core, one of them not measured for a stretch."""

import matplotlib.pyplot as plt
import numpy as np
from look import PARTS, band, dots, save

import sumgp

rng = np.random.default_rng(2)
depth = np.linspace(0, 10, 25)
shares = np.exp(np.column_stack([np.sin(depth / 2), 0.5 * np.cos(depth / 3), 0.1 * depth - 0.5]))
measured = 100 * shares / shares.sum(axis=1, keepdims=True) + rng.normal(0, 2, (25, 3))
measured[9:17, 1] = np.nan  # no clay readings here

names = ["quartz", "clay", "calcite"]
gp = sumgp.ConstrainedGP("quartz + clay + calcite = 100", outputs=names, inputs=["depth"], uncertainty="plug-in")
gp.fit(depth, measured)

x = np.linspace(0, 10, 100)
posterior = gp.posterior(x)
print(f"sums to 100 within {abs(posterior.residual()).max():.0e}")
figure, axes = plt.subplots(figsize=(4.2, 2.8))
for column, name in enumerate(names):
    band(axes, x, posterior, column, PARTS[column], name)
    dots(axes, depth, measured[:, column], PARTS[column])
axes.set(xlabel="depth", ylabel="share in %")
axes.legend(fontsize=8, ncols=3, loc="upper center")
save(figure, "composition")
