"""Fitted models go to worker processes and back: every kind of law is pickled whole."""

import pickle

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from sumgp import ConstrainedGP, FunctionConstraint, LinearConstraint, SumConstraint, Term, Unknown
from sumgp.transforms import Square

T = np.linspace(0.0, 1.0, 7)
Y = np.column_stack([1.4 + 0.1 * T, 1.4 - 0.1 * T])

FORMULAS = [
    "a**2*b = 2",
    "exp(a*b) = 2",
    "a/b = 2",
    "sqrt(a*b) = 1.4",
    "log(a*b) = 0.7",
    "abs(a*b) = 2",
    "a**b = 1.5",
    "(a*b)**-2 = 0.25",
    "sin(a*b) = 0.9",
    "cos(a*b) = -0.4",
    "tan(a*b/4) = 0.5",
    "asin(a*b/4) = 0.5",
    "acos(a*b/4) = 1",
    "atan(a*b) = 1",
    "sinh(a*b/2) + cosh(a*b/2) = 2.7",
    "tanh(a*b) = 0.9",
    "a*b**1.5 = 2",
    "a**2*b**3 = t + 4",
    "a**2*b = E",
]


def product(f, x):
    return f[:, 0] * f[:, 1] - 2.0


def slope(x):
    return 1.0 + x[:, 0]


def matrix(x):
    return np.stack([1.0 + x[:, 0], np.ones(len(x))], axis=1)


def copied(model):
    copy = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copy.predict(T), model.predict(T))
    assert np.array_equal(copy.posterior(T).residual(), model.posterior(T).residual())
    return copy


def fitted(law, **settings):
    quick = {"uncertainty": "plug-in", "restarts": 0, "kernel": RBF()}
    return ConstrainedGP(law, outputs=["a", "b"], inputs=["t"], **quick, **settings).fit(T[:, None], Y)


@pytest.mark.filterwarnings("ignore::sumgp.errors.SumGPWarning")
@pytest.mark.parametrize("law", FORMULAS)
def test_every_formula(law):
    copy = copied(fitted(law, constants={"E": "unknown"} if "E" in law else None))
    assert copy.law_.relaxed(np.ones(copy.law_.n_columns)).n_rows == 1


OBJECTS = {
    "formula and function": ["a**2*b = 2.7", FunctionConstraint(product)],
    "unknown beside others": ["a**2*b = 2.7", SumConstraint([Term("a"), Term("b")], Unknown("total"))],
    "varying coefficients": SumConstraint([Term("a", slope), Term("b", transform=Square())], 3.4),
    "varying matrix": LinearConstraint(matrix, Unknown("S")),
}


@pytest.mark.filterwarnings("ignore::sumgp.errors.SumGPWarning")
@pytest.mark.parametrize("law", OBJECTS.values(), ids=OBJECTS.keys())
def test_every_kind_of_object(law):
    copied(fitted(law))
