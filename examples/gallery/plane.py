"""Two inputs: three land covers over a plane that fill it completely, from sixty plots."""

import matplotlib.pyplot as plt
import numpy as np
from look import DATA, save

import sumgp


def cover(x):
    """True shares of forest, grass and rock at places x (n, 2)."""
    parts = np.exp(np.column_stack([np.sin(3 * x[:, 0]), np.cos(2 * x[:, 1]), x[:, 0] * x[:, 1]]))
    return parts / parts.sum(axis=1, keepdims=True)


rng = np.random.default_rng(6)
places = rng.uniform(0, 2, (60, 2))
measured = cover(places) + rng.normal(0, 0.03, (60, 3))
names = ["forest", "grass", "rock"]
gp = sumgp.ConstrainedGP("forest + grass + rock = 1", outputs=names, inputs=["east", "north"], uncertainty="plug-in")
gp.fit(places, measured)

side = np.linspace(0, 2, 30)
grid = np.array([[e, n] for n in side for e in side])
mean = gp.predict(grid)
print(f"error {np.sqrt(np.mean((mean - cover(grid)) ** 2)):.3f}, sums to 1 within {abs(mean.sum(axis=1) - 1).max():.0e}")
figure, panels = plt.subplots(1, 3, figsize=(4.2, 2.0), sharey=True)
for axes, name, values in zip(panels, names, mean.T, strict=True):
    axes.contourf(side, side, values.reshape(30, 30), levels=10, cmap="viridis", vmin=0, vmax=0.8)
    axes.plot(*places.T, ".", color=DATA, markersize=2)
    axes.set(title=name, aspect="equal", xticks=[0, 1, 2], yticks=[0, 1, 2])
save(figure, "plane")
