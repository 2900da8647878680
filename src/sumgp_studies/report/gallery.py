"""Which figures a reproduction shows, and their making: fit once, draw in every theme."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from joblib import Parallel, delayed
from matplotlib.figure import Figure

from sumgp.numerics import limited_threads
from sumgp.report import DARK, LIGHT, Picture, Theme, drawing_with
from sumgp_studies.experiments import FIT_FAILURES, DoublePendulum, Method, Problem, Record, Settings
from sumgp_studies.report.curves import fit_curves
from sumgp_studies.report.pendulum_figures import (
    PendulumCurves,
    draw_frame_rates,
    draw_pendulum,
    frame_rate_energies,
    pendulum_window,
)
from sumgp_studies.report.score_figures import draw_calibration, draw_ratios
from sumgp_studies.report.sum_figures import draw_engines, draw_sum_problem
from sumgp_studies.report.summary import Comparison, coverage_curves
from sumgp_studies.report.triangle_figure import draw_triangle

SUM_PROBLEMS = ("harmonic_oscillator", "free_fall", "damped_oscillator", "log_sine")
TRIPTYCH = ("unconstrained", "transformed-laplace", "linearized")
Draw = Callable[[Theme], Figure]


def as_svg(draw: Draw, theme: Theme) -> bytes:
    """The drawn figure as SVG."""
    with drawing_with(theme):
        buffer = io.BytesIO()
        draw(theme).savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()


@dataclass(frozen=True)
class Sketch:
    """A figure that is still to be made: ``prepare`` does the fits and gives what draws them."""

    name: str
    experiment: str
    caption: str
    prepare: Callable[[], Draw]

    def picture(self) -> Picture:
        """The finished figure; a failed fit becomes words in its place."""
        try:
            with limited_threads(1), warnings.catch_warnings():
                # The same fits stand in the records, with their warnings.
                warnings.simplefilter("ignore")
                draw = self.prepare()
                return Picture(self.name, self.experiment, self.caption, as_svg(draw, LIGHT), as_svg(draw, DARK))
        except FIT_FAILURES as error:
            return Picture(self.name, self.experiment, self.caption, trouble=f"{type(error).__name__}: {error}")


def experiment_sketches(problem: Problem, methods: Mapping[str, Method], settings: Settings) -> list[Sketch]:
    """The figures of one experiment, drawn from its first data set."""
    note = "" if problem.comparable() else " Simulated data, not the paper's."
    if problem.name in SUM_PROBLEMS:
        caption = (
            "Left: no law. Middle: the terms of the law as the transformed outputs learn them, with their total. "
            "Right: with the law (dashed: the transformed method). Bands hold 95 %."
        )
        return [Sketch(problem.name, problem.name, caption, partial(_sum_problem, problem, methods, settings))]
    if problem.name == "approximations":
        caption = "The same data with every way of approximate inference. Bands hold 95 %."
        return [Sketch(problem.name, problem.name, caption, partial(_engines, problem, methods, settings))]
    if problem.name == "triangle":
        caption = (
            "Left: true poses of the triangle, and the measured corners as dots. Right: how far the predicted edges are "
            "from their lengths."
        )
        return [Sketch(problem.name, problem.name, caption, partial(_triangle, problem, methods, settings))]
    if isinstance(problem, DoublePendulum):
        fitted = (
            "One window of 200 rows: trajectory, energies, and the outputs learned from 15 rows. Bands hold 95 %." + note
        )
        rates = "Energy if the camera ran at 400 or at 500 frames a second: only the latter never gains energy." + note
        return [
            Sketch(problem.name, problem.name, fitted, partial(_pendulum, problem, methods, settings)),
            Sketch("frame_rates", problem.name, rates, partial(_frame_rates, problem)),
        ]
    return []


def score_sketches(comparisons: Sequence[Comparison], records: Sequence[Record]) -> list[Sketch]:
    """The figures made from records alone."""
    sketches = []
    if comparisons:
        caption = "Own mean RMSE over the published one, for each cell of each table."
        sketches.append(Sketch("ratios", "", caption, partial(_bound, draw_ratios, comparisons)))
    curves = coverage_curves(records)
    if curves:
        caption = "Observed against nominal coverage of the true values, over all data sets; on the diagonal both are equal."
        sketches.append(Sketch("calibration", "", caption, partial(_bound, draw_calibration, curves)))
    return sketches


def make(sketches: Sequence[Sketch], jobs: int) -> list[Picture]:
    """Finish all figures, several at a time."""
    return list(Parallel(n_jobs=jobs)(delayed(sketch.picture)() for sketch in sketches))


def _bound(draw: Callable[..., Figure], data: object) -> Draw:
    return partial(draw, data)


def _sum_problem(problem: Problem, methods: Mapping[str, Method], settings: Settings) -> Draw:
    chosen = [methods[name] for name in TRIPTYCH]
    # The middle noise level with missing outputs shows most.
    return partial(draw_sum_problem, fit_curves(problem, problem.cells[4], chosen, settings, transformed_by=TRIPTYCH[1]))


def _engines(problem: Problem, methods: Mapping[str, Method], settings: Settings) -> Draw:
    chosen = [methods[name] for name in problem.default_methods if name != "projected"]
    return partial(draw_engines, fit_curves(problem, problem.cells[-1], chosen, settings))


def _triangle(problem: Problem, methods: Mapping[str, Method], settings: Settings) -> Draw:
    chosen = [methods[name] for name in ("unconstrained", "projected", "linearized")]
    return partial(draw_triangle, fit_curves(problem, problem.cells[-1], chosen, settings))


def _pendulum(problem: DoublePendulum, methods: Mapping[str, Method], settings: Settings) -> Draw:
    chosen = [methods[name] for name in ("unconstrained", "linearized")]
    curves = fit_curves(problem, problem.cells[0], chosen, settings)
    return partial(draw_pendulum, PendulumCurves(curves, pendulum_window(problem, settings.random_state)))


def _frame_rates(problem: DoublePendulum) -> Draw:
    return partial(draw_frame_rates, frame_rate_energies(problem))
