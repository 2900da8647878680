"""Figures of the tutorials, drawn from what their scripts leave behind: python examples/gallery/tutorials.py"""

import contextlib
import io
import runpy
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from look import DATA, FAINT, PARTS, WITH, WITHOUT, band, dots, save

EXAMPLES = Path(__file__).resolve().parents[1]


def names_of(script):
    """Everything that a tutorial's script defines."""
    with contextlib.redirect_stdout(io.StringIO()):
        return runpy.run_path(str(EXAMPLES / f"{script}.py"))


def energy():
    found = names_of("energy")
    t, data = found["t"], found["data"]
    figure, panels = plt.subplots(1, 2, figsize=(7.2, 2.6), sharey=True)
    for column, axes in enumerate(panels):
        for gp, color, label in [(found["plain"], WITHOUT, "no law"), (found["known"], WITH, "energy known")]:
            band(axes, t, gp.posterior(t), column, color, label)
        axes.plot(t, found["truth"][:, column], "--", color=DATA, linewidth=1, label="truth")
        dots(axes, data["t"], data["zv"[column]])
        axes.set(title=["position z", "velocity v"][column], xlabel="t")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8)
    save(figure, "tutorial_energy")


def rates():
    found = names_of("rates")
    figure, panels = plt.subplots(1, 3, figsize=(7.2, 2.6), width_ratios=(1.3, 1, 1))
    for column, name in enumerate("VR"):
        band(panels[0], found["times"], found["posterior"], column, PARTS[column], name)
        panels[0].plot(found["times"], found["spikes"][:, column], "--", color=DATA, linewidth=1)
        dots(panels[0], found["times"][::10], found["measured"][:, column], PARTS[column])
    panels[0].set(title="a nerve cell", xlabel="t")
    panels[0].legend(fontsize=8)
    grid = found["grid"].reshape(15, 15, 2)[::2, ::2].reshape(-1, 2)
    for (name, model), axes, color in zip(found["flows"].items(), panels[1:], (WITHOUT, WITH), strict=True):
        axes.quiver(*grid.T, *found["current"](*grid.T).T, color=FAINT, scale=16)
        axes.quiver(*grid.T, *model.predict(grid).T, color=color, scale=16)
        axes.plot(*found["places"].T, ".", color=DATA, markersize=4)
        axes.set(title=f"a flow, {name}", xlabel="x", aspect="equal")
    save(figure, "tutorial_rates")


def composition():
    found = names_of("composition")
    figure, panels = plt.subplots(1, 2, figsize=(7.2, 2.6))
    for column, name in enumerate(found["names"]):
        band(panels[0], found["new"], found["posterior"], column, PARTS[column], name)
        dots(panels[0], found["depth"], found["measured"][:, column], PARTS[column])
    panels[0].set(xlabel="depth", ylabel="share in %")
    panels[0].legend(fontsize=8, ncols=3, loc="upper center")
    panels[1].plot(found["new"], found["plain"].predict(found["new"]).sum(axis=1), color=WITHOUT, label="no law")
    panels[1].plot(found["new"], found["posterior"].mean.sum(axis=1), color=WITH, label="sum is 100")
    panels[1].set(xlabel="depth", ylabel="sum of the shares in %")
    panels[1].legend(fontsize=8)
    save(figure, "tutorial_composition")


def force_balance():
    found = names_of("force_balance")
    x = np.linspace(0.2, 3.8, 80)
    figure, axes = plt.subplots(figsize=(5.2, 2.6))
    for column, name in enumerate(["left", "right"]):
        band(axes, x, found["gp"].posterior(x[:, None]), column, PARTS[column], f"{name} scale")
        dots(axes, found["frame"]["x"], found["frame"][name], PARTS[column])
    axes.plot(x, 50 * (1 - x / 4), "--", color=DATA, linewidth=1, label="truth")
    axes.set(xlabel="position of the load in m", ylabel="force in N")
    axes.legend(fontsize=8)
    save(figure, "tutorial_force_balance")


def rigid_body():
    found = names_of("rigid_body")
    mean, seen = found["gp"].predict(found["new"]), found["seen"]
    figure, panels = plt.subplots(1, 2, figsize=(7.2, 2.8))
    for row in mean[::20]:
        panels[0].plot(row[[0, 2, 4, 0]], row[[1, 3, 5, 1]], color=FAINT, linewidth=1)
    for k, name in enumerate("abc"):
        panels[0].plot(mean[:, 2 * k], mean[:, 2 * k + 1], color=PARTS[k], label=f"marker {name}")
        dots(panels[0], seen[:, 2 * k], seen[:, 2 * k + 1], PARTS[k])
    panels[0].set(aspect="equal", xlabel="x", ylabel="y")
    panels[0].legend(fontsize=8)
    for model, color, label in [(found["plain"], WITHOUT, "no law"), (found["gp"], WITH, "fixed lengths")]:
        f = model.predict(found["new"])
        panels[1].plot(found["new"], np.hypot(f[:, 2] - f[:, 4], f[:, 3] - f[:, 5]), color=color, label=label)
    panels[1].set(xlabel="t", ylabel="length of edge bc")
    panels[1].legend(fontsize=8)
    save(figure, "tutorial_rigid_body")


def bounds():
    found = names_of("bounds")
    years, shares, kept = found["years"], found["shares"], found["kept"]
    x = years["year"].to_numpy()
    figure, panels = plt.subplots(1, 2, figsize=(7.2, 2.6))
    for axes, name in zip(panels, ["solar", "wind"], strict=True):
        column = found["data"].outputs.index(name)
        for gp, color, label in [(found["free"], WITHOUT, "sum is 100"), (found["bounded"], WITH, "and all >= 0")]:
            band(axes, x, gp.posterior(years), column, color, label)
        dots(axes, x[kept], shares[name][kept])
        axes.axhline(0, color=FAINT, linewidth=1)
        axes.set(title=name, xlabel="year", ylabel="share in %")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=8)
    save(figure, "tutorial_bounds")


def gaps():
    found = names_of("gaps")
    filled, table, truth = found["filled"], found["table"], found["data"].Y
    year = filled["year"].to_numpy()
    figure, panels = plt.subplots(1, 2, figsize=(7.2, 2.6))
    for axes, name in zip(panels, ["gas", "hydro"], strict=True):
        empty = table[name].isna().to_numpy()
        values = [filled[name + end].to_numpy()[empty] for end in ("", "_lower", "_upper")]
        axes.plot(year, truth[name], color=FAINT, linewidth=1.2, label="reported")
        dots(axes, year, table[name], label="given")
        ends = [values[0] - values[1], values[2] - values[0]]
        axes.errorbar(
            year[empty], values[0], ends, fmt="o", color=WITH, markersize=4, linewidth=1, label="filled, 95 % interval"
        )
        axes.set(title=name, xlabel="year", ylabel="share in %")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8)
    save(figure, "tutorial_gaps")


if __name__ == "__main__":
    for draw in (energy, rates, composition, force_balance, rigid_body, bounds, gaps):
        draw()
