"""Growth that has not ended: the logistic equation, its rate and capacity estimated with the curve."""

import matplotlib.pyplot as plt
import numpy as np
from look import DATA, FAINT, WITH, WITHOUT, band, dots, save

import sumgp


def truth(t):
    """Solution of dn/dt = 1.2 n (1 - n/2), n(0) = 0.1."""
    return 2 / (1 + 19 * np.exp(-1.2 * t))


rng = np.random.default_rng(0)
t = np.linspace(0, 4.5, 16)
measured = truth(t) + rng.normal(0, 0.03, 16)
x = np.linspace(0, 4.5, 80)

plain = sumgp.ConstrainedGP(outputs=["n"], inputs=["t"]).fit(t, measured)
law = "d(n, t) = r*n*(1 - n/K)"
gp = sumgp.ConstrainedGP(law, outputs=["n"], inputs=["t"], constants={"r": "unknown", "K": "unknown"}).fit(t, measured)

constants = gp.posterior(x).constants()
print(constants[["mean", "lower", "upper"]].round(1))
figure, panels = plt.subplots(1, 2, figsize=(6.4, 2.7), width_ratios=[2, 1])
band(panels[0], x, plain.posterior(x), 0, WITHOUT, "no law")
band(panels[0], x, gp.posterior(x), 0, WITH, "logistic equation")
panels[0].plot(x, truth(x), "--", color=DATA, linewidth=1)
dots(panels[0], t, measured)
panels[0].set(xlabel="t", ylabel="n")
panels[0].legend(fontsize=8)
ends = np.abs(constants[["lower", "upper"]].to_numpy() - constants["mean"].to_numpy()[:, None]).T
panels[1].errorbar([0, 1], constants["mean"], ends, fmt="o", color=WITH, linewidth=1.5)
panels[1].hlines([1.2, 2.0], [-0.2, 0.8], [0.2, 1.2], color=FAINT, linestyle="--", label="true")
panels[1].set(xticks=[0, 1], xticklabels=["rate r", "capacity K"], xlim=(-0.6, 1.6))
panels[1].legend(fontsize=8)
save(figure, "growth")
