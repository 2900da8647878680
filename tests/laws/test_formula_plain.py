"""The short way through a plain formula gives what the algebra gives, and takes nothing that the algebra refuses."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from laws.formula_corpus import CONSTANTS, INPUTS, OUTPUTS, RIGHT, WRONG

from sumgp.errors import ConstraintError
from sumgp.laws import Law, SumLaw
from sumgp.laws.formula.binding import build_law
from sumgp.laws.formula.constraint import plain_law
from sumgp.laws.formula.syntax import parse_equation, split_laws
from sumgp.laws.formula.tree import read_constants, read_names

NAMES = read_names(OUTPUTS, INPUTS, read_constants(CONSTANTS))


def both(text: str) -> tuple[SumLaw | None, Law]:
    """The law by the short way, None where it does not apply, and by the algebra."""
    equations = [parse_equation(law) for law in split_laws(text)]
    return plain_law(equations, NAMES), build_law(equations, NAMES)


def assert_same(plain: SumLaw, full: Law) -> None:
    assert isinstance(full, SumLaw)
    assert (plain.outputs, plain.unknowns, plain.labels) == (full.outputs, full.unknowns, full.labels)
    assert (plain.columns, plain.notes, plain.extra_columns) == (full.columns, full.notes, full.extra_columns)
    np.testing.assert_array_equal(plain.coefficients, full.coefficients)
    np.testing.assert_array_equal(plain.total, full.total)
    np.testing.assert_array_equal(plain.noise, full.noise)
    assert plain.explain() == full.explain()


@pytest.mark.parametrize(
    "text",
    [
        "z + v = 1",
        "k/2*z**2 + m/2*v**2 = E",
        "sum(p) = 1",
        "sum(z, v, -w) = 0",
        "z + v = U",
        "2*(z - v)/3 = -(w + 1)*k",
        "(2*z)^3 + `CO2 (ppm)` = pi*e",
        "z**2 - v**2 = 3",
        "-z**2 - v**2 = -3",
        "z**2 = 0",
        "z*2**-3 = 1",
        "z + v = 1; p1 - p2 = 0; z**2 + w = E",
    ],
)
def test_plain_laws_need_no_algebra(text: str) -> None:
    plain, full = both(text)
    assert plain is not None
    assert_same(plain, full)


@pytest.mark.parametrize(
    "text",
    [
        "z*v = 1",
        "t*z + v = 1",
        "c*z + v = 1",
        "T*z + v = 1",
        "exp(z) + v = 1",
        "z**0.5 = 1",
        "1/z = 2",
        "(z + v)**2 = 1",
        "z**2 - 2*z = 3",
        "norm(a, b) = 1",
        "sum(g*p) = 1",
        "z + v = 1; 2*z + 2*v = 2",
        "z - z + v = 1",
        "1e200*z + v = 1",
    ],
)
def test_other_laws_are_left_to_the_algebra(text: str) -> None:
    plain, _ = both(text)
    assert plain is None


@pytest.mark.parametrize("text", [case.text for case in RIGHT])
def test_the_two_ways_agree_on_the_corpus(text: str) -> None:
    plain, full = both(text)
    if plain is not None:
        assert_same(plain, full)


@pytest.mark.parametrize("text", [case.text for case in WRONG])
def test_what_the_algebra_refuses_is_not_taken(text: str) -> None:
    try:
        equations = [parse_equation(law) for law in split_laws(text)]
    except ConstraintError:
        return
    assert plain_law(equations, NAMES) is None


def random_sum(rng: np.random.Generator, depth: int) -> str:
    """A sum of outputs, unknowns, powers and numbers with coefficients, brackets now and then."""
    terms = []
    for _ in range(rng.integers(1, 4)):
        number = str(
            rng.choice(["2", "0.1", "1/3", "k", "-m", "pi", "1e-3", "2**3", "(1 - 3)", "0"], p=[0.105] * 9 + [0.055])
        )
        name = str(rng.choice(["z", "v", "w", "p1", "U", "z**2", "v**2", "w**4", "(2*p2)**3", "1", "E"]))
        inner = f"({random_sum(rng, depth - 1)})" if depth and rng.random() < 0.3 else name
        terms.append(str(rng.choice([f"{number}*{inner}", f"{inner}/{number}", inner])))
    return str(rng.choice([" + ", " - "])).join(terms)


def test_the_two_ways_agree_on_random_sums() -> None:
    rng = np.random.default_rng(17)
    taken = 0
    for _ in range(400):
        text = f"{random_sum(rng, 2)} = {random_sum(rng, 1)}"
        equations = [parse_equation(text)]
        plain = plain_law(equations, NAMES)
        if plain is not None:
            taken += 1
            assert_same(plain, build_law(equations, NAMES))
    assert 100 < taken < 400


def test_coefficients_are_rounded_once() -> None:
    plain, _ = both("0.1*z + 0.2*z = 0.7/7")
    assert plain is not None
    assert plain.coefficients[0, 0] == float(Fraction(3, 10)) != 0.1 + 0.2
    assert plain.total[0] == 0.1


def test_a_plain_law_is_bound_without_loading_sympy() -> None:
    code = (
        "import sys; from sumgp.laws import FormulaConstraint as F; F('a + b = 1').bind(['a', 'b']); "
        "before = 'sympy' in sys.modules; F('a*b = 1').bind(['a', 'b']); print(before, 'sympy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]
