"""A robot's arm of two links: marker positions with noise, links of fixed length."""

import matplotlib.pyplot as plt
import numpy as np
from look import FAINT, PARTS, WITH, dots, save

import sumgp

t = np.linspace(0, 2, 16)


def joints(t):
    """Elbow and hand (n, 4); links of length 1 and 0.8."""
    elbow = np.column_stack([np.cos(t), np.sin(t)])
    return np.hstack([elbow, elbow + 0.8 * np.column_stack([np.cos(2.2 * t - 1), np.sin(2.2 * t - 1)])])


seen = joints(t) + np.random.default_rng(4).normal(0, 0.05, (16, 4))
seen[6:10, 2:] = np.nan  # the hand was hidden
names = ["e_x", "e_y", "h_x", "h_y"]
settings = {"outputs": names, "inputs": ["t"], "uncertainty": "plug-in"}
gp = sumgp.ConstrainedGP(["norm(e) = 1", "norm(h, e) = 0.8"], **settings).fit(t, seen)
plain = sumgp.ConstrainedGP(None, groups=[names], **settings).fit(t, seen)

new = np.linspace(0, 2, 60)
for name, model in [("no law", plain), ("rigid links", gp)]:
    print(f"{name}: error {np.sqrt(np.mean((model.predict(new) - joints(new)) ** 2)):.3f}")
mean = gp.predict(new)
figure, axes = plt.subplots(figsize=(4.2, 2.8))
for row in mean[::6]:
    axes.plot([0, row[0], row[2]], [0, row[1], row[3]], color=FAINT, linewidth=1)
axes.plot(mean[:, 0], mean[:, 1], color=PARTS[1], label="elbow")
axes.plot(mean[:, 2], mean[:, 3], color=WITH, label="hand")
dots(axes, seen[:, 0], seen[:, 1], PARTS[1])
dots(axes, seen[:, 2], seen[:, 3], WITH)
axes.set(aspect="equal", xlabel="x", ylabel="y", xlim=(-1.4, 3.2))
axes.legend(fontsize=8, loc="center right")
save(figure, "arm")
