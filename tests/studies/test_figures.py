"""Figures show the numbers they are said to show, in both themes, and the same on every run."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure
from studies.stand_in import Fails, Waves

from sumgp.report.drawing import DARK, LIGHT
from sumgp_studies.experiments import Cell, DoublePendulum, HarmonicOscillator, LogSine, Triangle, all_problems
from sumgp_studies.experiments.methods import Settings, all_methods
from sumgp_studies.report.curves import fit_curves, switches, term_values
from sumgp_studies.report.gallery import as_svg, experiment_sketches, make
from sumgp_studies.report.pendulum_figures import frame_rate_energies, pendulum_window
from sumgp_studies.report.sum_figures import draw_sum_problem
from sumgp_studies.report.triangle_figure import draw_triangle

METHODS = {name: Waves(name) for name in all_methods()}


@pytest.fixture(scope="module")
def curves():
    chosen = [METHODS[name] for name in ("unconstrained", "transformed-laplace", "linearized")]
    return fit_curves(HarmonicOscillator(), Cell(0.1, 0.2), chosen, Settings(), transformed_by="transformed-laplace")


def test_terms_add_up_to_the_laws_left_side(curves):
    data = curves.dataset
    terms = term_values(data, data.F_test, data.X_test)
    np.testing.assert_allclose(terms.sum(axis=1), 0.8, rtol=1e-12)


def test_switches_are_the_zeros_of_the_true_curves():
    data = HarmonicOscillator().dataset(Cell(0.05, 0.0), 0)
    z_zeros, v_zeros = switches(data, data.X_test, data.F_test)
    np.testing.assert_allclose(z_zeros, np.pi * np.arange(4), atol=2e-3)
    np.testing.assert_allclose(v_zeros, np.pi * (np.arange(3) + 0.5), atol=2e-3)


def test_switch_of_the_sine_is_where_the_cubic_meets_minus_half_pi():
    data = LogSine().dataset(Cell(0.05, 0.0), 0)
    log_switches, sine_switches = switches(data, data.X_test, data.F_test)
    assert len(log_switches) == 0
    np.testing.assert_allclose(sine_switches, [np.pi ** (1 / 3)], atol=2e-3)


def test_triptych_draws_data_means_and_missing_marks(curves):
    figure = draw_sum_problem(curves, LIGHT)
    left, middle, right = figure.axes
    lines = {tuple(np.round(line.get_ydata(), 9)) for line in left.get_lines()}
    assert tuple(np.round(curves.fits["unconstrained"].mean[:, 0], 9)) in lines
    crosses = [line for line in left.get_lines() if line.get_marker() == "x"]
    drawn = sorted(x for line in crosses for x in line.get_xdata())
    missing = np.isnan(curves.dataset.Y_train)
    assert drawn == sorted(curves.dataset.X_train[np.nonzero(missing)[0], 0])
    squares = [line for line in middle.get_lines() if line.get_marker() == "s"]
    assert sum(len(line.get_xdata()) for line in squares) == sum(len(points) for points in curves.virtual) > 0
    assert left.get_ylim() == right.get_ylim()


def test_triangle_figure_shows_the_error_of_the_edges():
    spoiled = [Waves("unconstrained", shift=0.0)]
    curves = fit_curves(Triangle(), Cell(1e-2), spoiled, Settings())
    errors = draw_triangle(curves, DARK).axes[1].get_lines()[0].get_ydata()
    corners = curves.fits["unconstrained"].mean.reshape(-1, 3, 2)
    lengths = [np.linalg.norm(corners[:, i] - corners[:, j], axis=1) for i, j in ((0, 1), (0, 2), (1, 2))]
    expected = np.mean(np.abs(np.stack(lengths, 1) - [4.0, np.hypot(4.4, 2.0), np.hypot(0.4, 2.0)]), axis=1)
    np.testing.assert_allclose(errors, expected, rtol=1e-9)


def test_pendulum_window_is_that_of_the_data_set():
    problem = DoublePendulum()
    data, window = problem.dataset(Cell(), 3), pendulum_window(problem, 3)
    np.testing.assert_array_equal(window[2::14], data.Y_train)


def test_simulated_energy_is_steady_only_at_the_true_frame_rate():
    rates = frame_rate_energies(DoublePendulum())
    wrong, right = np.ptp(rates.energies, axis=1)
    assert right < 0.2 * wrong


def test_every_experiment_has_its_figures_in_both_themes():
    sketches = [s for problem in all_problems().values() for s in experiment_sketches(problem, METHODS, Settings())]
    pictures = make(sketches, jobs=1)
    assert {picture.name for picture in pictures} == {*all_problems(), "frame_rates"}
    for picture in pictures:
        assert not picture.trouble
        assert picture.light.startswith(b"<?xml")
        assert LIGHT.panel.encode() in picture.light
        assert DARK.panel.encode() in picture.dark


def test_a_failed_fit_leaves_words_instead_of_a_figure():
    (sketch,) = experiment_sketches(Triangle(), METHODS | {"linearized": Fails()}, Settings())
    picture = sketch.picture()
    assert picture.trouble.startswith("NumericalError: nothing converged")
    assert picture.light == b""


def test_figures_are_the_same_on_every_run_and_leave_settings_alone(curves):
    import matplotlib as mpl

    before = mpl.rcParams["axes.facecolor"]
    first, second = (as_svg(lambda theme: draw_sum_problem(curves, theme), DARK) for _ in range(2))
    assert first == second
    assert mpl.rcParams["axes.facecolor"] == before
    assert isinstance(draw_sum_problem(curves, DARK), Figure)
