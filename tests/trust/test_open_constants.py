"""Several unknown constants in one law: found from all rows together, and named where law and data leave them open."""

import warnings

import numpy as np
import pytest

from sumgp import ConstrainedGP
from sumgp.errors import ConstraintError, SumGPWarning
from sumgp.laws.formula import FormulaConstraint
from sumgp.laws.shared_constants import shared_constants

T = np.linspace(0.0, 5.0, 20)
ASKED = np.linspace(0.0, 5.0, 40)
UNKNOWN = "unknown"


def fitted(law: str, outputs: str, constants: str, truth, noise, seed: int = 1000) -> tuple[ConstrainedGP, np.ndarray]:
    """A fit to rows of ``truth`` (n, T) with this noise, and the errors of its means in standard deviations of the truth."""
    y = truth(T) + np.random.default_rng(seed).standard_normal((len(T), len(outputs))) * noise
    named = dict.fromkeys(constants, UNKNOWN)
    gp = ConstrainedGP(
        law, outputs=list(outputs), inputs=["t"], constants=named, uncertainty="plug-in", restarts=0, kernel="rbf"
    ).fit(T, y)
    there = truth(ASKED)
    return gp, np.sqrt(np.mean((gp.predict(ASKED) - there) ** 2, axis=0)) / there.std(axis=0)


def rates(t: np.ndarray) -> np.ndarray:
    """Temperature and the rate of a reaction after Arrhenius."""
    temperature = 300.0 + 20.0 * np.sin(t)
    return np.column_stack([temperature, 1e8 * np.exp(-5000.0 / temperature)])


def test_a_decay_with_the_input_does_not_run_away():
    def decay(t):
        return np.column_stack([np.sin(t), np.sin(t) + 50.0 * np.exp(-3.0 * t)])

    _, error = fitted("y = x + A*exp(-k*t)", "xy", "Ak", decay, 0.1, seed=1003)
    assert error.max() < 0.2  # means ran to 1e112 in the first rows


def test_a_constant_whose_sign_is_open_is_positive():
    gp, _ = fitted(
        "x**2/a**2 + y**2/b**2 = 1", "xy", "ab", lambda t: np.column_stack([3.0 * np.cos(t), 0.5 * np.sin(t)]), [0.1, 0.03]
    )
    assert gp.posterior(T[:1]).constants()["mean"].to_numpy() == pytest.approx([3.0, 0.5], rel=0.1)  # b was -0.48


@pytest.mark.filterwarnings("ignore:constants")
@pytest.mark.parametrize("seed", [1000, 1001])
def test_constants_of_an_exponential_are_found(seed):
    gp, error = fitted("k = A*exp(-E/T)", "Tk", "AE", rates, [1.0, 0.5], seed)
    assert error.max() < 0.2  # was 1.0: single rows suggest A = 8, E = 1
    found = gp.posterior(T[:1]).constants()
    assert found.loc["E", "lower"] < 5000.0 < found.loc["E", "upper"]
    assert gp.fit_report_.status == "converged"


@pytest.mark.parametrize("second", [1.0, 1e6, 1e-6])
@pytest.mark.parametrize("metre", [1.0, 1e4, 1e-5])
def test_the_frequency_of_an_oscillation_is_found_in_any_units(second: float, metre: float):
    """Sums of squares have a minimum at each turn more or less; found from A = w = p = 1, .1 or 10 before: a flat curve."""
    generator = np.random.default_rng(1022)
    t = np.sort(generator.uniform(0.0, 10.0, 40))
    z = metre * (2.0 * np.sin(4.0 * t + 1.0) + 0.1 * generator.standard_normal(len(t)))
    law = FormulaConstraint("z = A*sin(w*t + p)", dict.fromkeys("Awp", UNKNOWN)).bind(["z"], ["t"])
    found = shared_constants(law, z[:, None], second * t[:, None], np.ones(3))
    assert found is not None
    size, frequency, _ = np.abs(found[0])
    assert size == pytest.approx(2.0 * metre, rel=0.05)
    assert frequency == pytest.approx(4.0 / second, rel=0.01)


@pytest.mark.parametrize(("n", "w"), [(20, 2.0), (30, 8.0), (16, 4.0)])
def test_even_rows_show_the_slowest_of_equal_oscillations(n: int, w: float):
    """They cannot tell w from 2 pi / spacing - w, which was found instead and called converged."""
    generator = np.random.default_rng(n)
    t = np.linspace(0.0, 10.0, n)
    z = 2.0 * np.sin(w * t + 1.0) + 0.1 * generator.standard_normal(n)
    law = FormulaConstraint("z = A*sin(w*t + p)", dict.fromkeys("Awp", UNKNOWN)).bind(["z"], ["t"])
    found = shared_constants(law, z[:, None], t[:, None], np.ones(3))
    assert found is not None
    assert np.abs(found[0][1]) == pytest.approx(w, rel=0.02)


def test_a_fast_oscillation_is_not_called_noise():
    """Its error was 14 sds of the noise, 11 % of the intervals held the truth, and the fit said that it converged."""
    generator = np.random.default_rng(1015)
    t = np.sort(generator.uniform(0.0, 10.0, 80))
    z = 2.0 * np.sin(15.0 * t + generator.uniform(0, 6))
    y = z[:, None] + 0.1 * generator.standard_normal((len(t), 1))
    gp = ConstrainedGP(
        "z = A*sin(w*t + p)", outputs=["z"], inputs=["t"], constants=dict.fromkeys("Awp", UNKNOWN), uncertainty="plug-in",
        restarts=0, kernel="rbf",
    ).fit(t, y)  # fmt: skip
    assert np.sqrt(np.mean((gp.predict(t).ravel() - z) ** 2)) < 0.1


def test_constants_that_are_tied_but_known_give_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error", SumGPWarning)
        gp, _ = fitted("log(k) = A - E/T", "Tk", "AE", rates, [0.3, 0.1])
    assert abs(gp.posterior(T[:1]).constant_correlations().loc["A", "E"]) > 0.99


def test_a_saturation_that_is_not_reached():
    def slow(t):
        s = 0.2 + 0.15 * np.sin(t)
        return np.column_stack([s, 50.0 * s / (10.0 + s)])

    with pytest.warns(SumGPWarning, match="'M' can hardly be distinguished from 'K'|leave 'M' open"):
        gp, error = fitted("v = M*s/(K + s)", "sv", "MK", slow, [0.01, 0.05])
    assert error.max() < 0.1  # was 0.36: a pole among the rows
    assert gp.fit_report_["open_constants"]


def test_a_line_seen_over_a_short_range():
    def short(t):
        x = 2.0 + 0.05 * np.sin(t)
        return np.column_stack([x, 10.0 - 2.0 * x])

    with pytest.warns(SumGPWarning, match="constants"):
        gp, _ = fitted("y = a + b*x", "xy", "ab", short, [0.1, 0.1])
    found = gp.posterior(T[:1]).constants()
    assert found.loc["b", "lower"] < -2.0 < found.loc["b", "upper"]  # was 0.8 to 3.2


@pytest.mark.parametrize("law", ["y = a*b*x**2", "x + y = a + b"])
def test_constants_of_which_only_one_combination_matters(law):
    def pair(t):
        x = 2.0 + np.sin(t)
        return np.column_stack([x, 6.0 * x**2 if "*" in law else 6.0 - x])

    with pytest.warns(SumGPWarning, match="leave 'a' open"):
        fitted(law, "xy", "ab", pair, [0.1, 0.1])


@pytest.mark.parametrize(("law", "constants"), [("k/2*z**2 + m/2*v**2 = E", "kmE"), ("k*z = m*v", "km")])
def test_a_law_that_constants_of_zero_meet_is_refused(law, constants):
    with pytest.raises(ConstraintError, match="only ratios of constants matter; give the value of one of them"):
        fitted(law, "zv", constants, lambda t: np.column_stack([np.sin(t), np.cos(t)]), [0.1, 0.1])


def test_the_law_says_as_much_of_curves_where_its_constant_is_open():
    """Beside the wide prior of a constant the law said nothing of noise and lengthscale: c was off by 8 sds."""
    t = np.linspace(0.0, 6.0, 12)
    truth = np.column_stack([2.0 + np.sin(t), 6.0 / (2.0 + np.sin(t))])
    noise = 0.07 * truth.std(axis=0)
    y = truth + noise * np.random.default_rng(1019).standard_normal(truth.shape)
    gp = ConstrainedGP("x*y = c", outputs=["x", "y"], inputs=["t"], constants={"c": UNKNOWN}).fit(t, y)
    found = gp.posterior(T[:1]).constants().loc["c"]
    assert abs(found["mean"] - 6.0) < 3.0 * found["sd"]
    (low, high) = gp.posterior(t).interval()
    assert np.mean((low <= truth) & (truth <= high)) > 0.6  # was .28


def test_points_that_count_on_their_own_do_not_tell_a_constant_again_and_again():
    """A law that speaks at each point alone took 60 points for as many measurements of the radius: it was off by 6 sds."""
    t = np.linspace(0.0, 6.0, 12)
    y = 2.0 * np.column_stack([np.cos(t), np.sin(t)]) + 0.1 * np.random.default_rng(1013).standard_normal((12, 2))
    gp = ConstrainedGP("x**2 + y**2 = c**2", outputs=["x", "y"], inputs=["t"], constants={"c": UNKNOWN}).fit(t, y)
    found = gp.posterior(T[:1]).constants().loc["c"]
    assert abs(found["mean"] - 2.0) < 3.0 * found["sd"]
    assert "0.0" not in gp.fit_report_["taper_weights"]
