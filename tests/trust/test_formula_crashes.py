"""Formulas that passed the parser and then ended in a traceback."""

import numpy as np
import pytest

from sumgp import ConstrainedGP
from sumgp.errors import ConstraintError
from sumgp.laws import parse_constraint
from sumgp.laws.formula.edges import PowerFunction, continued_power
from sumgp.laws.formula.intervals import REALS


@pytest.mark.parametrize("law", ["(-abs(a))**b = 1", "(-a**2)**b = c", "(-exp(a))**b = 2"])
def test_a_power_without_a_real_value_is_refused_when_the_law_is_read(law):
    with pytest.raises(ConstraintError, match="not defined for any real outputs"):
        parse_constraint(law, ["a", "b", "c"])


def test_a_base_that_can_be_positive_stays_allowed():
    assert parse_constraint("(-a)**b = 1", ["a", "b"]).relaxed(np.ones(2)).n_rows == 1


def test_a_term_far_below_all_doubles_in_a_denominator():
    names = ["b", "v_x", "p1", "G"]
    law = parse_constraint("cos(G)*t**4/(pi*v_x-p1/1e200)=b", names, ["t"])
    relaxed = law.relaxed(np.ones(4))
    f, x = np.array([[1.0, 2.0, 3.0, 0.5]]), np.array([[1.5]])
    assert np.allclose(relaxed.residual(f, x), np.cos(0.5) * 1.5**4 / (2 * np.pi) - 1.0)
    assert np.all(np.isfinite(relaxed.jacobian(f, x)))


@pytest.mark.filterwarnings("ignore::sumgp.errors.SumGPWarning")
def test_such_a_law_can_be_fitted():
    t = np.linspace(1.0, 2.0, 8)
    v, G = 2.0 + t, 0.5 + 0.1 * t
    Y = np.column_stack([np.cos(G) * t**4 / (np.pi * v), v, np.ones(8), G])
    model = ConstrainedGP(
        "cos(G)*t**4/(pi*v_x-p1/1e200)=b", outputs=["b", "v_x", "p1", "G"], inputs=["t"], uncertainty="plug-in", restarts=0
    )
    assert np.abs(model.fit(t[:, None], Y).posterior(t[:, None]).residual()).max() < 1e-12


@pytest.mark.parametrize("order", [1, 2, 3, 4, 7, 64])
@pytest.mark.parametrize("size", [1e-250, 1e-3, 1.0, 1e90])
def test_a_pole_is_passed_with_finite_values_and_matching_slopes(order, size):
    pole = continued_power(-float(order), size, REALS)
    u = pole.edge * np.linspace(-3.0, 3.0, 241)
    assert np.all(np.isfinite(pole.value(u)))
    assert np.all(np.isfinite(pole.derivative(u)))
    exact = PowerFunction(-float(order))
    edge = np.array([pole.edge])
    assert np.allclose(pole.value(0.999999999 * edge), exact.value(edge), rtol=1e-6)
    assert np.allclose(pole.derivative(0.999999999 * edge), exact.derivative(edge), rtol=1e-6)
