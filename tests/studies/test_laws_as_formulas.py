"""Each problem's law written as a formula is the same law as its hand-built object."""

from __future__ import annotations

import numpy as np
import pytest

from sumgp.laws import FormulaConstraint, FunctionLaw, SumLaw
from sumgp_studies.experiments import all_problems

PROBLEMS = all_problems()
KINDS = {"triangle": FunctionLaw}


def assert_same_law(formula_law, law, data):
    generator = np.random.default_rng(0)
    f = data.F_test + 0.05 * generator.standard_normal(data.F_test.shape)
    np.testing.assert_allclose(formula_law.residual(f, data.X_test), law.residual(f, data.X_test), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(formula_law.jacobian(f, data.X_test), law.jacobian(f, data.X_test), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", list(PROBLEMS))
def test_law(name):
    data = PROBLEMS[name].dataset(PROBLEMS[name].cells[0], 0)
    law = FormulaConstraint(data.formula, data.constants).bind(data.outputs, data.inputs)
    assert isinstance(law, KINDS.get(name, SumLaw))
    assert_same_law(law, data.law(), data)


def test_further_laws_of_the_pendulum():
    data = PROBLEMS["double_pendulum"].dataset(PROBLEMS["double_pendulum"].cells[0], 0)
    law = FormulaConstraint(data.further_formula, data.constants).bind(data.outputs, data.inputs)
    assert_same_law(law, data.further_constraint.bind(data.outputs, data.inputs), data)
