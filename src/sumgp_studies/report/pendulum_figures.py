"""Figures of the double pendulum: trajectory, energies and fitted outputs; and its energy for two frame rates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sumgp.report import Theme
from sumgp_studies.experiments import N_ROWS, TRAINING_ROWS, Cell, DoublePendulum, SimulatedPendulum, read_recording
from sumgp_studies.report.curves import Curves

SMOOTHED_ROWS = 100
FRAME_RATES = (400.0, 500.0)


@dataclass(frozen=True)
class PendulumCurves:
    """Fits of one window, and the prepared rows (200, 8) of that window."""

    curves: Curves
    window: np.ndarray


@dataclass(frozen=True)
class FrameRates:
    """Total energy over a whole recording, computed with each frame rate and smoothed: seconds and energies (rates, n)."""

    seconds: np.ndarray
    energies: np.ndarray
    simulated: bool


def pendulum_window(problem: DoublePendulum, seed: int) -> np.ndarray:
    """(200, 8) prepared rows of the data set of this seed."""
    return problem.prepared(problem.raw_window(problem.generator(Cell(), seed)))[1:-1]


def frame_rate_energies(problem: DoublePendulum, recording: int = 5) -> FrameRates:
    """Energy in scaled units (ten times joules, unit mass m_g) if the camera had run at 400 or at 500 frames a second."""
    if problem.folder is None:
        raw = SimulatedPendulum().recording(4000, np.random.default_rng(recording))
    else:
        raw = read_recording(problem.folder / f"{recording}.csv")
    window = np.ones(SMOOTHED_ROWS) / SMOOTHED_ROWS
    energies = []
    for rate in FRAME_RATES:
        assumed = replace(problem, frame_rate=rate)
        total = np.add(*assumed.energies(assumed.prepared(raw)))
        energies.append(np.convolve(total, window, mode="valid")[::10])
    seconds = np.arange(len(raw) - SMOOTHED_ROWS + 1)[::10] / problem.frame_rate
    return FrameRates(seconds, np.array(energies), problem.folder is None)


def draw_pendulum(data: PendulumCurves, theme: Theme) -> Figure:
    """Trajectory, energies, and the outputs as each method fits them."""
    names = list(data.curves.fits)
    figure = Figure(figsize=(11.0, 3.4 + 2.7 * len(names)), layout="constrained")
    parts = np.atleast_1d(np.asarray(figure.subfigures(1 + len(names), 1, height_ratios=[3.2] + [2.7] * len(names))))
    top, below = parts[0], parts[1:]
    trajectory, energies = top.subplots(1, 2, width_ratios=[1, 1.7])
    _trajectory(trajectory, data, theme)
    _energies(energies, data, theme)
    for name, part in zip(names, below, strict=True):
        panels = part.subplots(1, 2)
        _fitted(panels, data, name, theme)
    return figure


def _trajectory(axes: Axes, data: PendulumCurves, theme: Theme) -> None:
    window = data.window
    axes.plot(window[:, 0], window[:, 1], color=theme.cycle[0], label="end of arm 1")
    axes.plot(window[:, 2], window[:, 3], color=theme.cycle[1], label="end of arm 2")
    for columns, colour in (((0, 1), theme.cycle[0]), ((2, 3), theme.cycle[1])):
        axes.plot(*window[TRAINING_ROWS][:, columns].T, "o", color=colour, markersize=3.5)
    axes.plot(0, 0, "+", color=theme.ink, markersize=8)
    axes.set(aspect="equal", title="trajectory (scaled positions)")
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + 0.25 * (high - low))  # room for the legend above the pivot
    axes.legend(loc="upper center", ncols=2, handlelength=1.2)


def _energies(axes: Axes, data: PendulumCurves, theme: Theme) -> None:
    problem = data.curves.problem
    assert isinstance(problem, DoublePendulum)
    potential, kinetic = problem.energies(data.window)
    times = problem.time_scale * np.arange(N_ROWS) / problem.frame_rate
    axes.plot(times, kinetic, color=theme.cycle[0], label="kinetic")
    axes.plot(times, potential, color=theme.cycle[1], label="potential")
    axes.plot(times, kinetic + potential, color=theme.ink, label="total")
    axes.axhline(
        data.curves.dataset.constants["E"], color=theme.cycle[2], linestyle="--", label="total from the training rows"
    )
    axes.set(title="energies (scaled)", xlabel="t")
    axes.legend(loc="best", ncols=2)


def _fitted(panels: Sequence[Axes], data: PendulumCurves, name: str, theme: Theme) -> None:
    dataset, band, x = data.curves.dataset, data.curves.fits[name], data.curves.grid[:, 0]
    for panel, columns, title in zip(panels, (range(4), range(4, 8)), ("positions", "velocities"), strict=True):
        for number, column in enumerate(columns):
            colour = theme.cycle[number]
            panel.fill_between(x, band.lower[:, column], band.upper[:, column], color=colour, alpha=0.22, linewidth=0)
            panel.plot(x, band.mean[:, column], color=colour, label=dataset.outputs[column])
            panel.plot(dataset.X_test[:, 0], dataset.F_test[:, column], ".", color=colour, markersize=1.2)
            panel.plot(dataset.X_train[:, 0], dataset.Y_train[:, column], "o", color=colour, markersize=3.5)
        panel.set(title=f"{name}: {title}", xlabel="t")
        low, high = panel.get_ylim()
        panel.set_ylim(low, high + 0.18 * (high - low))  # room for the legend above the curves
        panel.legend(loc="upper center", ncols=4, handlelength=1.0)


def draw_frame_rates(rates: FrameRates, theme: Theme) -> Figure:
    """Total energy over time for both frame rates: it may fall by friction, it cannot rise."""
    figure = Figure(figsize=(6.8, 3.2), layout="constrained")
    axes = figure.subplots()
    for number, (rate, energy) in enumerate(zip(FRAME_RATES, rates.energies, strict=True)):
        axes.plot(rates.seconds, energy, color=theme.cycle[1 - number], linewidth=1.0, label=f"{rate:g} frames a second")
    kind = "simulated pendulum" if rates.simulated else "recording 5"
    axes.set(xlabel="seconds", ylabel="total energy (scaled)", title=f"total energy, {kind}, mean over {SMOOTHED_ROWS} rows")
    axes.legend(loc="best")
    return figure
