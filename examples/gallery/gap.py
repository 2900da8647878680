"""A gap that the law fills: the velocity was not recorded for more than half of the time; the energy is known."""

import matplotlib.pyplot as plt
import numpy as np
from look import DATA, FAINT, WITH, WITHOUT, band, dots, save

import sumgp

rng = np.random.default_rng(5)
t = np.linspace(0, 12, 40)
motion = np.column_stack([np.sin(t), np.cos(t)])  # position and velocity
measured = motion + rng.normal(0, 0.05, motion.shape)
measured[(t > 2.5) & (t < 10), 1] = np.nan  # no velocity here

names = {"outputs": ["z", "v"], "inputs": ["t"], "uncertainty": "plug-in"}
plain = sumgp.ConstrainedGP(None, **names).fit(t, measured)
gp = sumgp.ConstrainedGP("z**2/2 + v**2/2 = E", constants={"E": 0.5}, **names).fit(t, measured)

x = np.linspace(0, 12, 160)
figure, panels = plt.subplots(1, 2, figsize=(7.6, 2.7), sharey=True)
for axes, model, color, title in [(panels[0], plain, WITHOUT, "without the law"), (panels[1], gp, WITH, "with the law")]:
    axes.axvspan(2.5, 10, color=FAINT, alpha=0.3, linewidth=0)
    axes.plot(x, np.cos(x), "--", color=DATA, linewidth=1, label="truth")
    band(axes, x, model.posterior(x), 1, color, "prediction, 95 % interval")
    dots(axes, t, measured[:, 1], label="measured")
    axes.set(title=title, xlabel="t", ylim=(-2.6, 2.6))
    axes.legend(loc="lower center", ncols=3, fontsize=7, columnspacing=1, handlelength=1.5)
panels[0].set_ylabel("velocity")
error = [np.sqrt(np.mean((model.predict(x)[:, 1] - np.cos(x)) ** 2)) for model in (plain, gp)]
print(f"error of the velocity: {error[0]:.2f} without the law, {error[1]:.2f} with it")
save(figure, "gap")
