"""A circle of unknown radius: noisy positions on an arc, and the radius with its interval."""

import matplotlib.pyplot as plt
import numpy as np
from look import DATA, WITH, WITHOUT, dots, save

import sumgp

rng = np.random.default_rng(1)
angle = np.linspace(0, 2 * np.pi, 26)
keep = (angle < 2.2) | (angle > 3.6)  # a part was hidden
measured = 2.0 * np.column_stack([np.cos(angle), np.sin(angle)])[keep] + rng.normal(0, 0.12, (keep.sum(), 2))

names = {"outputs": ["x", "y"], "inputs": ["angle"], "uncertainty": "plug-in"}
plain = sumgp.ConstrainedGP(None, **names).fit(angle[keep], measured)
gp = sumgp.ConstrainedGP("x**2 + y**2 = r**2", constants={"r": "unknown"}, **names).fit(angle[keep], measured)

new = np.linspace(0, 2 * np.pi, 120)
print(gp.posterior(new).constants().round(2).to_string())
figure, axes = plt.subplots(figsize=(4.2, 2.8))
axes.plot(2 * np.cos(new), 2 * np.sin(new), "--", color=DATA, linewidth=1, label="truth")
axes.plot(*plain.predict(new).T, color=WITHOUT, label="no law")
axes.plot(*gp.predict(new).T, color=WITH, label="on a circle")
dots(axes, *measured.T)
axes.set(aspect="equal", xlabel="x", ylabel="y", xlim=(-2.6, 5.4))
axes.legend(fontsize=8, loc="center right")
save(figure, "orbit")
