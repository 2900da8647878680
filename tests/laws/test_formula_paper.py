"""The laws of the paper's six problems: written as formulas they equal the hand-built objects."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest

from sumgp.laws import Constraint, FunctionConstraint, FunctionLaw, SumConstraint, SumLaw, Term, parse_constraint
from sumgp.transforms import Log, Sin, Square

TRIANGLE = ("z1x", "z1y", "z2x", "z2y", "z3x", "z3y")
EDGES = {"L12": (0, 1, 4.0), "L13": (0, 2, 4.83), "L23": (1, 2, 2.04)}
PENDULUM = ("z_bx", "z_by", "z_gx", "z_gy", "v_bx", "v_by", "v_gx", "v_gy")


def damped_energy(x: np.ndarray) -> np.ndarray:
    return 0.8 * np.exp(-0.1 * x[:, 0]) * (1 - 0.05 * np.sin(2 * x[:, 0]))


def log_sine_total(x: np.ndarray) -> np.ndarray:
    first = 2 * np.exp(-5 * (x[:, 0] - 1) ** 2) + np.exp(-5 * (x[:, 0] + 1) ** 2) + 0.2
    return np.log(first) + np.sin(-(x[:, 0] ** 3) / 2)


def squared_lengths(f: np.ndarray, x: np.ndarray) -> np.ndarray:
    points = f.reshape(len(f), 3, 2)
    return np.stack([((points[:, a] - points[:, b]) ** 2).sum(axis=1) - size**2 for a, b, size in EDGES.values()], axis=1)


def squared_length_slopes(f: np.ndarray, x: np.ndarray) -> np.ndarray:
    points = f.reshape(len(f), 3, 2)
    slopes = np.zeros((len(f), 3, 3, 2))
    for row, (a, b, _) in enumerate(EDGES.values()):
        slopes[:, row, a] = 2 * (points[:, a] - points[:, b])
        slopes[:, row, b] = -slopes[:, row, a]
    return slopes.reshape(len(f), 3, 6)


def lengths(f: np.ndarray, x: np.ndarray) -> np.ndarray:
    sizes = np.array([size for *_, size in EDGES.values()])
    return np.sqrt(squared_lengths(f, x) + sizes**2) - sizes


def length_slopes(f: np.ndarray, x: np.ndarray) -> np.ndarray:
    sizes = np.array([size for *_, size in EDGES.values()])
    return squared_length_slopes(f, x) / (2 * (lengths(f, x) + sizes))[:, :, None]


@dataclass(frozen=True)
class Problem:
    """A law of the paper as text and by hand."""

    name: str
    text: str | list[str]
    outputs: tuple[str, ...]
    constants: dict
    by_hand: Constraint
    kind: type


OSCILLATOR = {"k": 1.0, "m": 1.0, "E": 0.8}
MASSES = {"m_b": 6.5, "m_g": 1.0, "g": 9.81, "E": 31.7}

PROBLEMS = [
    Problem(
        "harmonic oscillator",
        "k/2*z**2 + m/2*v**2 = E",
        ("z", "v"),
        OSCILLATOR,
        SumConstraint([Term("z", 0.5, Square()), Term("v", 0.5, Square())], 0.8),
        SumLaw,
    ),
    Problem(
        "free fall",
        "m*g*z + m/2*20*v**2 = E/20",
        ("z", "v"),
        {"m": 1.0, "g": 9.81, "E": 200.0},
        SumConstraint([Term("z", 9.81), Term("v", 10.0, Square())], 10.0),
        SumLaw,
    ),
    Problem(
        "damped oscillator",
        "k/2*z**2 + m/2*v**2 = E",
        ("z", "v"),
        OSCILLATOR | {"E": damped_energy},
        SumConstraint([Term("z", 0.5, Square()), Term("v", 0.5, Square())], damped_energy),
        SumLaw,
    ),
    Problem(
        "log and sine",
        "log(f1) + sin(f2) = C",
        ("f1", "f2"),
        {"C": log_sine_total},
        SumConstraint([Term("f1", 1.0, Log()), Term("f2", 1.0, Sin())], log_sine_total),
        SumLaw,
    ),
    Problem(
        "triangle, squared lengths",
        [f"({a}x - {b}x)**2 + ({a}y - {b}y)**2 = {L}**2" for L, a, b in (("L12", "z1", "z2"), ("L13", "z1", "z3"))]
        + ["norm(z2, z3)**2 = L23^2"],
        TRIANGLE,
        {name: size for name, (*_, size) in EDGES.items()},
        FunctionConstraint(squared_lengths, squared_length_slopes, rows=3),
        FunctionLaw,
    ),
    Problem(
        "triangle, lengths",
        "norm(z1, z2) = L12; norm(z1, z3) = L13; norm(z2, z3) = L23",
        TRIANGLE,
        {name: size for name, (*_, size) in EDGES.items()},
        FunctionConstraint(lengths, length_slopes, rows=3),
        FunctionLaw,
    ),
    Problem(
        "double pendulum",
        "m_b*g*z_by + m_g*g*z_gy + m_b/2*(v_bx**2 + v_by**2) + m_g/2*(v_gx**2 + v_gy**2) = E",
        PENDULUM,
        MASSES,
        SumConstraint(
            [
                Term("z_by", 6.5 * 9.81),
                Term("z_gy", 9.81),
                *(Term(name, 3.25, Square()) for name in ("v_bx", "v_by")),
                *(Term(name, 0.5, Square()) for name in ("v_gx", "v_gy")),
            ],
            31.7,
        ),
        SumLaw,
    ),
]


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_formula_equals_the_hand_built_law(problem: Problem, rng: np.random.Generator) -> None:
    law = parse_constraint(problem.text, problem.outputs, ["t"], problem.constants)
    by_hand = problem.by_hand.bind(problem.outputs, ["t"])
    assert type(law) is problem.kind
    f, x = rng.uniform(0.1, 3.0, (100, len(problem.outputs))), rng.uniform(-1, 2, (100, 1))
    size = by_hand.magnitude(f, x)
    assert np.max(np.abs(law.residual(f, x) - by_hand.residual(f, x)) / size) < 1e-12
    jacobian = by_hand.jacobian(f, x)
    assert np.max(np.abs(law.jacobian(f, x) - jacobian)) < 1e-12 * np.max(np.abs(jacobian))
    np.testing.assert_array_equal(law.involved(), np.abs(jacobian).max(axis=(0, 1)) > 0)
    if isinstance(law, SumLaw) and isinstance(by_hand, SumLaw):
        assert set(law.columns) == set(by_hand.columns)
        np.testing.assert_allclose(law.magnitude(f, x), size, rtol=1e-12)
        relaxed = by_hand.relaxed(np.ones(len(problem.outputs)))
        np.testing.assert_allclose(law.relaxed(np.ones(len(problem.outputs))).residual(-f, x), relaxed.residual(-f, x))


@pytest.mark.parametrize(
    ("loaded", "laws"),
    [("sumgp", "k/2*z**2 + m/2*v**2 = E"), ("sumgp, sympy", "k/2*z**2 + m/2*v**2 = E; norm(a, b) = 2")],
    ids=["plain", "with algebra"],
)
def test_parsing_and_preparing_is_fast_after_import(loaded: str, laws: str) -> None:
    """First law of a fresh process, in CPU time: the machine may be busy."""
    program = f"""
import time, numpy as np, {loaded}
sumgp.parse_constraint
start = time.process_time()
law = sumgp.parse_constraint("{laws}", ["z", "v", "a_x", "a_y", "b_x", "b_y"], ["t"],
                             {{"k": 1.0, "m": 1.0, "E": "unknown"}})
law.relaxed(np.ones(7)).jacobian(np.ones((5, 7)), np.ones((5, 1)))
print(time.process_time() - start)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 0.3
