"""Real orbit: Mars with noise added; its energy is that of a body that moves about the Sun."""

import matplotlib.pyplot as plt
import numpy as np
from look import WITH, dots, save

from sumgp import datasets

data = datasets.mars(noise=0.05)  # JPL ephemeris DE421, public domain
gp = data.model(uncertainty="plug-in").fit(data.X, data.Y)
posterior = gp.posterior(np.linspace(0, data.frame["t"].max(), 150))
print(f"energy missed by at most {abs(posterior.residual()).max():.0e}")
figure, axes = plt.subplots(figsize=(4.2, 2.8))
axes.plot(*posterior.mean[:, :2].T, color=WITH)
dots(axes, data.frame["x"], data.frame["y"])
axes.plot(0, 0, "*", color="#d6a000", markersize=12)
axes.set(aspect="equal", xlabel="x in au", ylabel="y in au")
save(figure, "mars")
