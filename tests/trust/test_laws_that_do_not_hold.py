"""A law that the predictions miss, or that has no value there, is in the status and in a warning."""

import numpy as np
import pytest

from sumgp import ConstrainedGP, FunctionConstraint, SumGPWarning

T = np.linspace(0.0, 3.0, 16)
FALLING = 1.0 - 0.6 * T + 0.02 * np.random.default_rng(0).standard_normal(16)


def fitted(law, Y):
    return ConstrainedGP(law, outputs=["a", "b"], uncertainty="plug-in", restarts=0).fit(T, Y)


def test_a_residual_that_is_no_number():
    Y = np.column_stack([1.5 * np.sin(T), np.full(16, np.nan)])
    with pytest.warns(SumGPWarning, match="is not defined at x = "):
        model = fitted("asin(a) = b", Y)
    assert np.isnan(model.posterior(T).residual()).any()
    assert "not defined" in model.fit_report_.status


def test_an_unmeasured_output_does_not_run_away():
    """exp(b) = a with a below zero in the last rows: b is what the first rows say, not -1.5e10."""
    with pytest.warns(SumGPWarning, match="pulls 'a' away from its data"):
        model = fitted("exp(b) = a", np.column_stack([FALLING, np.full(16, np.nan)]))
    assert "pulls 'a' away" in model.fit_report_.status
    early = T[:5]
    posterior = model.posterior(early)
    off = np.abs(posterior.mean[:, 1] - np.log(1.0 - 0.6 * early))
    assert off.max() < 0.5
    everywhere = model.posterior(T)
    assert np.abs(everywhere.mean[:, 1]).max() < 1e3
    assert np.abs(everywhere.mean[:5, 0] - FALLING[:5]).max() < 0.2


def test_steep_laws_do_not_overflow():
    """With RuntimeWarnings as errors: exp(b) far from its solution has a square beyond all doubles."""
    a = 1.85 - 0.6 * np.linspace(0.0, 3.0, 20) + 0.02 * np.random.default_rng(0).standard_normal(20)
    model = ConstrainedGP("exp(b) = a", outputs=["a", "b"])
    model.fit(np.linspace(0.0, 3.0, 20), np.column_stack([a, np.full(20, np.nan)]))
    assert np.abs(model.posterior(T).residual()).max() < 1e-12


def test_a_law_far_from_the_data():
    Y = np.column_stack([np.sin(T), np.cos(T)]) + 0.01 * np.random.default_rng(1).standard_normal((16, 2))
    with pytest.warns(SumGPWarning, match="away from its data"):
        model = fitted("a**2 + b**2 = 9", Y)
    assert model.fit_report_.status != "converged"


def never_zero(f, x):
    return 1.0 + f[:, 0] ** 2 + f[:, 1] ** 2


@pytest.mark.filterwarnings("ignore::sumgp.SumGPWarning")
def test_a_law_without_solutions():
    model = fitted(FunctionConstraint(never_zero), np.column_stack([np.sin(T), np.cos(T)]))
    assert model.fit_report_.status != "converged"


def test_a_law_that_holds_says_converged():
    Y = np.column_stack([np.sin(T), np.cos(T)]) + 0.01 * np.random.default_rng(1).standard_normal((16, 2))
    assert fitted("a**2 + b**2 = 1", Y).fit_report_.status == "converged"
