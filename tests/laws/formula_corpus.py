"""Formulas with what they mean: right ones beside a hand-written NumPy residual, wrong ones beside their message.

All right ones are read with the names below. References take a namespace of (n,) arrays, one per name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np

OUTPUTS = (
    "z",
    "v",
    "w",
    "a_x",
    "a_y",
    "b_x",
    "b_y",
    "q1x",
    "q1y",
    "q1z",
    "q2x",
    "q2y",
    "q2z",
    "p1",
    "p2",
    "p3",
    "CO2 (ppm)",
)
INPUTS = ("t", "s")
CONSTANTS = {
    "k": 2.0,
    "m": 0.5,
    "E": 0.8,
    "g1": 1.0,
    "g2": 0.25,
    "g3": 3.0,
    "h1": 1.0,
    "h2": 2.0,
    "o_x": 0.1,
    "o_y": -0.2,
    "U": "unknown",
    "c": lambda x: 1.0 + x[:, 0] ** 2,
    "T": "temperature",
}


@dataclass(frozen=True)
class Right:
    """A law, its kind (linear, sum, function), and left minus right side by hand."""

    text: str
    kind: str
    reference: Callable[[SimpleNamespace], np.ndarray]


@dataclass(frozen=True)
class Wrong:
    """A law that must be refused: a phrase of the message and the characters above the carets."""

    text: str
    phrase: str
    marked: str | None


def length(*differences: np.ndarray) -> np.ndarray:
    """Euclidean length."""
    return np.sqrt(sum(d**2 for d in differences))


RIGHT = [
    # linear
    Right("z + v = 1", "linear", lambda n: n.z + n.v - 1),
    Right("z + v == 1", "linear", lambda n: n.z + n.v - 1),
    Right("2*(z + v) = 3*w", "linear", lambda n: 2 * n.z + 2 * n.v - 3 * n.w),
    Right("z - (v - (w - 1)) = -2", "linear", lambda n: n.z - n.v + n.w - 1 + 2),
    Right("sum(p) = 1", "linear", lambda n: n.p1 + n.p2 + n.p3 - 1),
    Right("sum(p1, p2, 2*z) = 1", "linear", lambda n: n.p1 + n.p2 + 2 * n.z - 1),
    Right("sum(g*p) = k", "linear", lambda n: n.p1 + 0.25 * n.p2 + 3 * n.p3 - 2),
    Right("`CO2 (ppm)` + z = 400", "linear", lambda n: n.co2 + n.z - 400),
    Right("t*z + exp(-t)*v = sin(s)", "linear", lambda n: n.t * n.z + np.exp(-n.t) * n.v - np.sin(n.s)),
    Right("z + v = c", "linear", lambda n: n.z + n.v - n.c),
    Right("c*z + T*v = c*T", "linear", lambda n: n.c * n.z + n.T * n.v - n.c * n.T),
    Right("z + v = U", "linear", lambda n: n.z + n.v - n.U),
    Right("(t + 1)*(z - v) + z = s/(1 + t**2)", "linear", lambda n: (n.t + 1) * (n.z - n.v) + n.z - n.s / (1 + n.t**2)),
    Right("z/3 - .5*v = 1e-1", "linear", lambda n: n.z / 3 - 0.5 * n.v - 0.1),
    Right("z*v - v*z + w = z + 0*v", "linear", lambda n: n.w - n.z),
    Right("pi*z = e*v", "linear", lambda n: np.pi * n.z - np.e * n.v),
    Right("(z + 1)**2 - z**2 = v", "linear", lambda n: 2 * n.z + 1 - n.v),
    Right("+z - -v = --1", "linear", lambda n: n.z + n.v - 1),
    Right("sqrt(2)*z + 2**0.5*v = 10**2", "linear", lambda n: np.sqrt(2) * (n.z + n.v) - 100),
    # sums of transformed outputs
    Right("k/2*z**2 + m/2*v**2 = E", "sum", lambda n: n.z**2 + 0.25 * n.v**2 - 0.8),
    Right("k/2*z^2 + m/2*v^2 == E", "sum", lambda n: n.z**2 + 0.25 * n.v**2 - 0.8),
    Right("m*9.81*z + m/2*v**2 = U", "sum", lambda n: 0.5 * 9.81 * n.z + 0.25 * n.v**2 - n.U),
    Right("(2*z)**2 + (v/3)**2 = 1", "sum", lambda n: 4 * n.z**2 + n.v**2 / 9 - 1),
    Right("(z + 1)**2 + v**2 = 4", "sum", lambda n: (n.z + 1) ** 2 + n.v**2 - 4),
    Right("(z - v)*(z + v) = 1", "sum", lambda n: n.z**2 - n.v**2 - 1),
    Right("log(z) + sin(v) = c", "sum", lambda n: np.log(n.z) + np.sin(n.v) - n.c),
    Right("log(z/3) + cos(v) - tan(w) = 0", "sum", lambda n: np.log(n.z / 3) + np.cos(n.v) - np.tan(n.w)),
    Right("exp(z + t) + exp(v - 1) = 2", "sum", lambda n: np.exp(n.z + n.t) + np.exp(n.v - 1) - 2),
    Right("abs(z) + abs(-3*v) = 1", "sum", lambda n: np.abs(n.z) + 3 * np.abs(n.v) - 1),
    Right("abs(z)**2 + v = 1", "sum", lambda n: n.z**2 + n.v - 1),
    Right("z**3 - 2*v**4 + w = 0", "sum", lambda n: n.z**3 - 2 * n.v**4 + n.w),
    Right("sum(g/2*p**2) = t", "sum", lambda n: 0.5 * n.p1**2 + 0.125 * n.p2**2 + 1.5 * n.p3**2 - n.t),
    Right("norm(a)**2 = 2", "sum", lambda n: n.a_x**2 + n.a_y**2 - 2),
    Right("norm(a, o)**2 = 2", "sum", lambda n: (n.a_x - 0.1) ** 2 + (n.a_y + 0.2) ** 2 - 2),
    Right("z**2*t + v = T", "sum", lambda n: n.t * n.z**2 + n.v - n.T),
    Right("z**2.0 = v", "sum", lambda n: n.z**2 - n.v),
    Right("z**2/(1 + s**2) = v**2", "sum", lambda n: n.z**2 / (1 + n.s**2) - n.v**2),
    Right("(z*v)**2/v**2 = w", "sum", lambda n: n.z**2 - n.w),
    # general functions
    Right("z*v = 1", "function", lambda n: n.z * n.v - 1),
    Right("z/v = 2", "function", lambda n: n.z / n.v - 2),
    Right("norm(a, b) = 2", "function", lambda n: length(n.a_x - n.b_x, n.a_y - n.b_y) - 2),
    Right("norm(a, b)**2 = 4", "function", lambda n: (n.a_x - n.b_x) ** 2 + (n.a_y - n.b_y) ** 2 - 4),
    Right("norm(a, o) = 2", "function", lambda n: length(n.a_x - 0.1, n.a_y + 0.2) - 2),
    Right("norm(q1, q2) = U", "function", lambda n: length(n.q1x - n.q2x, n.q1y - n.q2y, n.q1z - n.q2z) - n.U),
    Right("norm(q1) = norm(q2)", "function", lambda n: length(n.q1x, n.q1y, n.q1z) - length(n.q2x, n.q2y, n.q2z)),
    Right("sin(2*z + 1) + v = 0", "function", lambda n: np.sin(2 * n.z + 1) + n.v),
    Right("exp(-z) + v = 1", "function", lambda n: np.exp(-n.z) + n.v - 1),
    Right("sqrt(z) + v = 1", "function", lambda n: np.sqrt(n.z) + n.v - 1),
    Right("z**1.5 - v**-2 = w**(-1/3)", "function", lambda n: n.z**1.5 - n.v**-2 - n.w ** (-1 / 3)),
    Right("asin(z) + acos(v) + atan(w) = 1", "function", lambda n: np.arcsin(n.z) + np.arccos(n.v) + np.arctan(n.w) - 1),
    Right("sinh(z) + cosh(v)*tanh(w) = 1", "function", lambda n: np.sinh(n.z) + np.cosh(n.v) * np.tanh(n.w) - 1),
    Right("z**v + 2**w = 3", "function", lambda n: n.z**n.v + 2**n.w - 3),
    Right("2**-z**2 = v", "function", lambda n: 2 ** (-(n.z**2)) - n.v),
    Right("z**2**3 = v*w", "function", lambda n: n.z**8 - n.v * n.w),
    Right("U*z**2 + v**2 = 1", "function", lambda n: n.U * n.z**2 + n.v**2 - 1),
    Right("log(1 + z**2*v**2)/t = 1", "function", lambda n: np.log(1 + n.z**2 * n.v**2) / n.t - 1),
    Right("sqrt(abs(z*v) + 1) = log(w*t)", "function", lambda n: np.sqrt(np.abs(n.z * n.v) + 1) - np.log(n.w * n.t)),
    Right("exp(z*c) = T*v*w", "function", lambda n: np.exp(n.z * n.c) - n.T * n.v * n.w),
    Right("sin(z)**2 + cos(v)**2 = 1", "function", lambda n: np.sin(n.z) ** 2 + np.cos(n.v) ** 2 - 1),
    Right("(z + v + w + p1)**20 = 1", "function", lambda n: (n.z + n.v + n.w + n.p1) ** 20 - 1),
    Right("sum(p)**3/(p1*p2 + 1) = 1", "function", lambda n: (n.p1 + n.p2 + n.p3) ** 3 / (n.p1 * n.p2 + 1) - 1),
    Right("z/(v - 2*w - 1) + 1/(z*t) = 0", "function", lambda n: n.z / (n.v - 2 * n.w - 1) + 1 / (n.z * n.t)),
]

WRONG = [
    # names
    Wrong("zz + v = 1", "unknown name 'zz' - did you mean 'z'?", "zz"),
    Wrong("z + Temp = 1", "unknown name 'Temp'", "Temp"),
    Wrong("z = K", "did you mean 'k'?", "K"),
    Wrong("p + z = 1", "write one of them, or sum(p)", "p"),
    Wrong("`CO2 ppm` = 1", "did you mean 'CO2 (ppm)'?", "`CO2 ppm`"),
    Wrong("__import__ = z", "unknown name '__import__'", "__import__"),
    Wrong("sine(z) = 1", "unknown function 'sine' - did you mean 'sin'?", "sine"),
    Wrong("lg(z) = 1", "write log10 or log2", "lg"),
    Wrong("z(v) = 1", "'z' is not a function", "z"),
    Wrong("__import__(z) = 1", "unknown function '__import__'", "__import__"),
    Wrong("exp(z, v) = 1", "exp takes one argument", "exp(z, v)"),
    Wrong("sum(z) = 1", "nothing to sum over", "sum(z)"),
    Wrong("sum(r) = 1", "nothing to sum over", "sum(r)"),
    Wrong("sum(sum(p)*p) = 1", "a sum inside a sum", "sum(p)"),
    Wrong("sum(p*q) = 1", "unknown name 'q'", "q"),
    Wrong("sum(h*p) = 1", "different indices: h1, h2; p1, p2, p3", "sum(h*p)"),
    Wrong("norm(a, c) = 1", "norm finds no matching coordinates of c", "norm(a, c)"),
    Wrong("norm(a, q1) = 1", "norm finds no matching coordinates of a and q1", "norm(a, q1)"),
    Wrong("norm(z + v) = 1", "norm takes the names", "norm(z + v)"),
    # syntax
    Wrong("2z = 1", "products are written with *", "z"),
    Wrong("2 (z + v) = 1", "products are written with *", "("),
    Wrong("z v = 1", "products are written with *", "v"),
    Wrong("z + v", "no '='", ""),
    Wrong("z = v = w", "a second '='", "="),
    Wrong("z => 1", "write >= for a bound", "=>"),
    Wrong("z = v <= 1", "'=' and a bound in one law", "="),
    Wrong("(z <= 1", "never closed", "("),
    Wrong("z != 1", "only equalities", "!="),
    Wrong("(z + v = 1", "never closed", "("),
    Wrong("z + v) = 1", "never opened", ")"),
    Wrong("exp(z = 1", "never closed", "exp"),
    Wrong("z + = 1", "got '='", "="),
    Wrong("z = ", "the law ends", ""),
    Wrong("z +* v = 1", "got '*'", "*"),
    Wrong("`z = 1", "never closed", "`"),
    Wrong("z, v = 1", "unexpected ','", ","),
    Wrong("exp() = z", "got ')'", ")"),
    Wrong("z = 0,5", "with a point", ","),
    # things that programs can do and formulas cannot
    Wrong("z.real = 1", "write the name alone", "."),
    Wrong("os.exp(z) = 1", "write the name alone", "."),
    Wrong("z[0] = 1", "not part of a formula", "["),
    Wrong("'z' = 1", "backticks", "'"),
    Wrong('"z" = 1', "backticks", '"'),
    Wrong("lambda z: z = 1", "not part of a formula", ":"),
    Wrong("{z} = 1", "not part of a formula", "{"),
    Wrong("z := 1", "not part of a formula", ":"),
    Wrong("z if v else w = 1", "operator is missing", "if"),
    Wrong("z % 2 = 1", "not part of a formula", "%"),
    Wrong("eval(z) = 1", "unknown function 'eval'", "eval"),
    Wrong("z \\ v = 1", "not part of a formula", "\\"),
    Wrong("z\x00 = 1", "not part of a formula", "\x00"),
    # sizes
    Wrong("9**9**9 = z", "larger than 64", "9**9**9"),
    Wrong("z**65 = 1", "larger than 64", "z**65"),
    Wrong("((z**8)**8)**8 = 1", "multiply to more than 64", "((z**8)**8)**8"),
    Wrong("1e400*z = 1", "too large", "1e400"),
    Wrong("1e-400*z = 1", "too small", "1e-400"),
    Wrong("exp(1000)*z = 1", "not a real number within range", "exp(1000)"),
    Wrong("1e200*(1e200*z) = 1", "change the units", "1e200*(1e200*z) = 1"),
    Wrong("1e200**1.7*z = 1", "too large", "1e200**1.7"),
    Wrong("z = 1e-200*1e-200", "too small", "1e-200*1e-200"),
    Wrong("1e200*1e200*z = 1", "change the units", "1e200*1e200*z = 1"),
    Wrong("(" * 60 + "z" + ")" * 60 + " = 1", "more than 50 brackets", None),
    Wrong("+".join(["z"] * 600) + " = 1", "more than 500 parts", None),
    Wrong("z + v = 1" + " " * 2000 + "+ 1", "at most 2000 characters", None),
    # numbers that are not real
    Wrong("sqrt(-1)*z = 1", "sqrt(-1) is not a real number", "sqrt(-1)"),
    Wrong("log(0) = z", "log(0) is not a real number", "log(0)"),
    Wrong("asin(2) = z", "asin(2) is not a real number", "asin(2)"),
    Wrong("(-8)**(1/3) = z", "not real", "(-8)**(1/3)"),
    Wrong("(-2)**z = 1", "not real", "(-2)**z"),
    Wrong("z/0 = 1", "division by zero", "0"),
    Wrong("z/(v - v) = 1", "division by zero", "v - v"),
    Wrong("0**-1 = z", "division by zero", "0**-1"),
    # meaning
    Wrong("t = 1", "no output in this law", "t = 1"),
    Wrong("U = E", "no output in this law", "U = E"),
    Wrong("1 = 1", "no output in this law", "1 = 1"),
    Wrong("z = z", "identically true", "z = z"),
    Wrong("(z + v)**2 = z**2 + 2*z*v + v**2", "identically true", None),
    Wrong("sin(z)**2 + cos(z)**2 = 1", "identically true", None),
    Wrong("cosh(z)**2 - sinh(z)**2 = 1", "identically true", None),
    Wrong("0.1*z + 0.2*z = 0.3*z", "identically true", None),
    Wrong("z + 1 = z", "no solution: the outputs cancel", None),
    Wrong("z + U = z", "the outputs cancel", None),
    Wrong("sin(z)**2 + cos(z)**2 = 2", "the outputs cancel", None),
    Wrong("z**2 + v**2 = -1", "no solution for real outputs: left minus right side is always at least 1", None),
    Wrong("-(z - v)**2 = 1 + t**2", "no solution for real outputs", None),
    Wrong("z**2 - 2*z + 5 = 0", "always at least 4", None),
    Wrong("z**4 - 4*z + sin(v) = -4.1", "no solution for real outputs", None),
    Wrong("exp(z) + exp(v) = 0", "always above 0", None),
    Wrong("sin(z) + cos(v) = 2.5", "no solution for real outputs", None),
    Wrong("tanh(z) = 1", "always below 0", None),
    Wrong("norm(a, b) = -1", "always at least 1", None),
    Wrong("abs(z) + sqrt(v) = -1", "no solution for real outputs", None),
    Wrong("atan(z) = 2", "no solution for real outputs", None),
    Wrong("cosh(z) + abs(v) = 0.5", "no solution for real outputs", None),
    Wrong("1/(1 + z**2) = 2", "no solution for real outputs", None),
    Wrong("acos(z) = 4", "no solution for real outputs", None),
    Wrong("log(-1 - z**2) = v", "not defined for any real outputs", None),
    Wrong("sqrt(-exp(z)) = v", "not defined for any real outputs", None),
    Wrong("sqrt(log(-exp(z)))**2 = v", "log(-exp(z)) is not defined for any real outputs", None),
    Wrong("(-1 - z**2)**0.3 = v", "not defined for any real outputs", None),
    Wrong("asin(2 + z**2) = v", "not defined for any real outputs", None),
    Wrong("z + v = 1; 2*z + 2*v = 3", "this law contradicts 'z + v = 1'", "2*z + 2*v = 3"),
    Wrong("z + v = 1; v + w = 2; z - w = 5", "contradicts 'z + v = 1' and 'v + w = 2'", "z - w = 5"),
    Wrong("z**2 + v**2 = 1\nz**2 + v**2 = t", "this law contradicts 'z**2 + v**2 = 1'", None),
    Wrong("norm(a, b) = 1; 2*norm(b, a) = 3", "this law contradicts 'norm(a, b) = 1'", None),
    Wrong("t*z + v = 1; 3*t*z + 3*v = 2", "contradicts", None),
]
