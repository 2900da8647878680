"""Formulas as people type them, by field: with what they mean, or with the hint they get and the law it leads to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np


@dataclass(frozen=True)
class Understood:
    """A law, the names of its outputs, its constants, and left minus right side by hand."""

    text: str
    outputs: str
    meaning: Callable[[SimpleNamespace], np.ndarray]
    constants: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Hinted:
    """A text that is refused: a phrase of the hint, and the law that one writes after reading it ("" = leave it out)."""

    text: str
    outputs: str
    phrase: str
    instead: str
    constants: dict[str, float] = field(default_factory=dict)


UNDERSTOOD = [
    # mechanics
    Understood("½*m*v² + ½*k*x² = E", "v x", lambda n: v2(n) / 2 * 2 + n.x**2 / 2 * 3 - 5, {"m": 2.0, "k": 3.0, "E": 5.0}),
    Understood("m·v²/2 + m·g·h = E", "v h", lambda n: v2(n) + 2 * 9.81 * n.h - 5, {"m": 2.0, "g": 9.81, "E": 5.0}),
    Understood("F₁ + F₂ − F₃ = 0", "F₁ F₂ F₃", lambda n: n.F1 + n.F2 - n.F3),
    Understood("m1*v1 + m2*v2 = p", "v1 v2", lambda n: 2 * n.v1 + 3 * n.v2 - 1, {"m1": 2.0, "m2": 3.0, "p": 1.0}),
    Understood("x^2 + y^2 = L^2", "x y", lambda n: n.x**2 + n.y**2 - 4, {"L": 2.0}),
    Understood("√(x² + y²) = L", "x y", lambda n: np.sqrt(n.x**2 + n.y**2) - 2, {"L": 2.0}),
    Understood("norm(hip, knee) = L", "hip_x hip_y knee_x knee_y", lambda n: distance(n) - 2, {"L": 2.0}),
    Understood("v = ω × r", "v r", lambda n: n.v - 2 * n.r, {"ω": 2.0}),
    Understood("x³ − 3·x = y", "x y", lambda n: n.x**3 - 3 * n.x - n.y),
    Understood("r⁻¹ + s⁻² = 1", "r s", lambda n: 1 / n.r + 1 / n.s**2 - 1),
    Understood("-x² = y", "x y", lambda n: -(n.x**2) - n.y),
    # chemistry
    Understood("pH = -log10(H)", "pH H", lambda n: n.pH + np.log10(n.H)),
    Understood("pH + pOH = 14", "pH pOH", lambda n: n.pH + n.pOH - 14),
    Understood("`Na+` + `K+` = `Cl-`", "Na+ K+ Cl-", lambda n: n.Na + n.K - n.Cl),
    Understood("A + B + 2×C = total", "A B C", lambda n: n.A + n.B + 2 * n.C - 3, {"total": 3.0}),
    Understood("ln(k) = ln(A) − Ea/(R·T)", "k T", lambda n: np.log(n.k) - np.log(3) + 2 / (8 * n.T),
               {"A": 3.0, "R": 8.0, "Ea": 2.0}),
    Understood("p*V = n*R*T", "p V T", lambda n: n.p * n.V - 2 * 8 * n.T, {"n": 2.0, "R": 8.0}),
    Understood("x1*γ1 = y1/2", "x1 y1", lambda n: n.x1 * 1.5 - n.y1 / 2, {"γ1": 1.5}),
    # shares
    Understood("sand + silt + clay = 100%", "sand silt clay", lambda n: n.sand + n.silt + n.clay - 1),
    Understood("sand + silt + clay = 100 %", "sand silt clay", lambda n: n.sand + n.silt + n.clay - 1),
    Understood("a + b = 2.5%*c", "a b c", lambda n: n.a + n.b - 0.025 * n.c),
    Understood("a + b + c == 1", "a b c", lambda n: n.a + n.b + n.c - 1),
    Understood("sum(w) = 1", "w1 w2 w3", lambda n: n.w1 + n.w2 + n.w3 - 1),
    Understood("⅓*a + ⅔*b = ¾", "a b", lambda n: n.a / 3 + 2 * n.b / 3 - 0.75),
    Understood("mean(a, b, c) = 0.5", "a b c", lambda n: (n.a + n.b + n.c) / 3 - 0.5),
    Understood("mean(w) = 1/3", "w1 w2 w3", lambda n: (n.w1 + n.w2 + n.w3) / 3 - 1 / 3),
    Understood("mean(w**2) = m", "w1 w2 m", lambda n: (n.w1**2 + n.w2**2) / 2 - n.m),
    # accounting
    Understood("assets = liabilities + equity", "assets liabilities equity", lambda n: n.assets - n.liabilities - n.equity),
    Understood("profit = revenue – cost", "profit revenue cost", lambda n: n.profit - n.revenue + n.cost),
    Understood("gross ÷ net = 1.19", "gross net", lambda n: n.gross / n.net - 1.19),
    Understood("net + 19%*net = gross", "gross net", lambda n: 1.19 * n.net - n.gross),
    # ecology, biology
    Understood("S + I + R = N", "S I R", lambda n: n.S + n.I + n.R - 10, {"N": 10.0}),
    Understood("log2(ratio) = fold", "ratio fold", lambda n: np.log2(n.ratio) - n.fold),
    Understood("δ*x − γ*ln(x) + β*y − α*ln(y) = C", "x y",
               lambda n: 2 * n.x - 3 * np.log(n.x) + n.y - 4 * np.log(n.y) - 5,
               {"δ": 2.0, "γ": 3.0, "β": 1.0, "α": 4.0, "C": 5.0}),
    # geometry
    Understood("A = π*r²", "A r", lambda n: n.A - np.pi * n.r**2),
    Understood("|a| + |b| = 1", "a b", lambda n: np.abs(n.a) + np.abs(n.b) - 1),
    Understood("|a − |b|| = c", "a b c", lambda n: np.abs(n.a - np.abs(n.b)) - n.c),
    Understood("2*|a*b|² = c", "a b c", lambda n: 2 * (n.a * n.b) ** 2 - n.c),
    Understood("α + β + γ = pi", "α β γ", lambda n: n.α + n.β + n.γ - np.pi),
    Understood("arcsin(a) + arctan(b) = c", "a b c", lambda n: np.arcsin(n.a) + np.arctan(n.b) - n.c),
    Understood("e^(-a) = b", "a b", lambda n: np.exp(-n.a) - n.b),
]  # fmt: skip


def v2(n: SimpleNamespace) -> np.ndarray:
    """The square of v."""
    return n.v**2


def distance(n: SimpleNamespace) -> np.ndarray:
    """Of hip and knee."""
    return np.hypot(n.hip_x - n.knee_x, n.hip_y - n.knee_y)


HINTED = [
    # products and brackets that are left out
    Hinted("PV = nRT", "P V T", "write P*V for a product", "P*V = n*R*T", {"n": 1.0, "R": 8.0}),
    Hinted("½mv² = E", "v", "products are written with *", "½*m*v² = E", {"m": 1.0, "E": 2.0}),
    Hinted("2a + b = 1", "a b", "products are written with *", "2*a + b = 1"),
    Hinted("a + b = 5 kg", "a b", "units are left out", "a + b = 5"),
    Hinted("CO2 ppm + rest = 1", "CO2 rest", "quoted with backticks", "`CO2` + rest = 1"),
    Hinted("sin a + b = 0", "a b", "write sin(...)", "sin(a) + b = 0"),
    Hinted("sin²(a) + b = 1", "a b", "write sin(...)**2", "sin(a)**2 + b = 1"),
    Hinted("1½*a = b", "a b", "1.5", "1.5*a = b"),
    Hinted("√a = b", "a b", "write sqrt(...)", "sqrt(a) = b"),
    # functions that do not exist
    Hinted("max(a, b) = 1", "a b largest", "an output or a data column of its own", "largest = 1"),
    Hinted("min(a, b) = c", "a b c least", "an output or a data column of its own", "least = c"),
    Hinted("sign(a) = b", "a b side", "an output or a data column of its own", "side = b"),
    Hinted("atan2(y, x) = φ", "x y φ r", "y = r*sin(phi); x = r*cos(phi)", "y = r*sin(φ); x = r*cos(φ)"),
    Hinted("asinh(a) = b", "a b", "write log(a + sqrt(a**2 + 1))", "log(a + sqrt(a**2 + 1)) = b"),
    Hinted("pow(a, 2) = b", "a b", "write a**b", "a**2 = b"),
    Hinted("LOG(a) = b", "a b", "log10 for that of base 10", "log10(a) = b"),
    Hinted("average(a, b) = 1", "a b", "write mean(a, b)", "mean(a, b) = 1"),
    Hinted("sind(a) = b", "a b", "write sin(pi/180*a)", "sin(pi/180*a) = b"),
    # bounds and soft laws
    Hinted("a => b", "a b", "write >= for a bound", ""),
    Hinted("a != b", "a b", "only equalities and bounds", ""),
    Hinted("a + b = 1 +- x", "a b", "a number is expected", "a + b = 1 +- 0.1"),
    Hinted("a + b ≈ 1", "a b", "write = for an exact law", "a + b = 1"),
    # derivatives
    Hinted("z' = v", "z v", "write d(z, t)", "d(z, t) = v"),
    Hinted("Δz = v", "z v", "write d(z, t)", "d(z, t) = v"),
    Hinted("∂²z/∂t² = v", "z v", "write d(z, t, 2)", "d(z, t, 2) = v"),
    Hinted("d²z/dt² = v", "z v", "write d(z, t, 2)", "d(z, t, 2) = v"),
    Hinted("d(z) = v", "z v", "an output and an input", "d(z, t) = v"),
    Hinted("d(z, v) = 1", "z v", "derivatives are taken by inputs", "d(z, t) = 1"),
    Hinted("d(z, t, 3) = v", "z v a", "a lower derivative as an output", "d(z, t, 2) = a; d(a, t) = v"),
    # other notations
    Hinted("a:b = 2:1", "a b", "a/b for a ratio a:b", "a/b = 2/1"),
    Hinted(r"\frac{1}{2} z^2 = E", "z", "LaTeX is not read", "(1)/(2)*z**2 = E", {"E": 1.0}),
    Hinted("z^{2} = E", "z", "round brackets", "z^(2) = E", {"E": 1.0}),
    Hinted("$a + b = 1$", "a b", "leave dollar signs out", "a + b = 1"),
    Hinted("Σ p = 1", "p1 p2", "write sum(p)", "sum(p) = 1"),
    Hinted("∑p = 1", "p1 p2", "write sum(p)", "sum(p) = 1"),
    Hinted("Σp = 1", "p1 p2", "write sum(p)", "sum(p) = 1"),
    Hinted("p1 + ... + p3 = 1", "p1 p2 p3", "write sum(p)", "sum(p) = 1"),
    Hinted("[Na+] = [Cl-]", "Na+ Cl-", "`Na+`", "`Na+` = `Cl-`"),
    Hinted("a + b = 0,5", "a b", "write 0.5 with a point", "a + b = 0.5"),
    Hinted("a + b = 1,000", "a b", "1000 without a separator", "a + b = 1000"),
    Hinted("a = 1 and b = 2", "a b", "separated by ;", "a = 1; b = 2"),
    Hinted("a = b = c", "a b c", "separated by ';'", "a = b; b = c"),
    Hinted("a % 2 = b", "a b", "except after a number", ""),
    Hinted("‖a‖ = 1", "a_x a_y", "norm(a)", "norm(a) = 1"),
    Hinted("|a − b| = 1", "a_x a_y b_x b_y", "norm(a, other) for a distance", "norm(a, b) = 1"),
    # names
    Hinted("a + b = S", "a b", 'constants={"S": 1.5} in Python, --constant S=1.5', "a + b = S", {"S": 1.0}),
    Hinted("x₁ + x₂ = 1", "x1 x2", "did you mean 'x1'?", "x1 + x2 = 1"),
    Hinted("Sand + Silt = 1", "sand silt", "did you mean 'sand'?", "sand + silt = 1"),
    Hinted("tempreature = b", "temperature b", "did you mean 'temperature'?", "temperature = b"),
]  # fmt: skip
