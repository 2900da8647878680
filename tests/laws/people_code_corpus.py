"""Formulas as people type them who come from code, spreadsheets, LaTeX or lectures: what they mean, or the hint."""

from __future__ import annotations

import numpy as np
from laws.people_corpus import Hinted
from laws.people_new_corpus import Read

TYPED = [
    # code
    Read("np.sin(x) = y", "x y", [lambda n: np.sin(n.x) - n.y]),
    Read("math.sqrt(x**2 + y**2) == L", "x y", [lambda n: np.sqrt(n.x**2 + n.y**2) - 2], constants={"L": 2.0}),
    Read("a**2+b**2==1", "a b", [lambda n: n.a**2 + n.b**2 - 1]),
    Read("sum(p)==100", "p1 p2 p3", [lambda n: n.p1 + n.p2 + n.p3 - 100]),
    Read("sum(all) = 1", "oak ash elm", [lambda n: n.oak + n.ash + n.elm - 1]),
    Read("mean(all) = 5", "oak ash", [lambda n: (n.oak + n.ash) / 2 - 5]),
    Read("a_1 + a_2 = np.pi", "a_1 a_2", [lambda n: n.a_1 + n.a_2 - np.pi]),
    # signs from a word processor
    Read("∂u/∂x + ∂v/∂y = 0", "u v", [lambda n: n.u_x + n.v_y], inputs="x y"),
    Read("x ⩾ 0; y ⩽ 1", "x y", bounds=[lambda n: -n.x, lambda n: n.y - 1]),
    Read("x + y ＝ 1", "x y", [lambda n: n.x + n.y - 1]),
    Read("α + β ≡ π", "α β", [lambda n: n.α + n.β - np.pi]),
    # chemistry and ecology
    Read("pH = pKa + log10(A/HA)", "pH A HA", [lambda n: n.pH - 4.76 - np.log10(n.A / n.HA)], constants={"pKa": 4.76}),
    Read("C = C0*exp(-k*t)", "C", [lambda n: n.C - 2.0], constants={"C0": 2.0, "k": 3.0}),
    Read("dS/dt = -beta*S*I; S + I + R = N", "S I R", [lambda n: n.S_t + 2 * n.S * n.I, lambda n: n.S + n.I + n.R - 9],
         constants={"beta": 2.0, "N": 9.0}),
    Read("n_births - n_deaths = dN/dt", "n_births n_deaths N", [lambda n: n.n_births - n.n_deaths - n.N_t]),
    # accounting
    Read("closing = opening + receipts - payments", "closing opening receipts payments",
         [lambda n: n.closing - n.opening - n.receipts + n.payments]),
    Read("gross = net*119%", "gross net", [lambda n: n.gross - 1.19 * n.net]),
    Read("total = sum(part) ± 0.5", "total part1 part2", [lambda n: n.total - n.part1 - n.part2], sds=[0.5]),
    # geometry and mechanics
    Read("c^2 = a^2 + b^2 - 2*a*b*cos(γ)", "a b c γ",
         [lambda n: n.c**2 - n.a**2 - n.b**2 + 2 * n.a * n.b * np.cos(n.γ)]),
    Read("1/f = 1/a + 1/b", "f a b", [lambda n: 1 / n.f - 1 / n.a - 1 / n.b]),
    Read("x = r*cos(φ); y = r*sin(φ)", "x y r φ",
         [lambda n: n.x - n.r * np.cos(n.φ), lambda n: n.y - n.r * np.sin(n.φ)]),
    Read("d(a + b, t) = 0", "a b", [lambda n: n.a_t + n.b_t]),
    Read("d2u/dx2 + d2u/dy2 = 0", "u", [lambda n: n.u_xx + n.u_yy], inputs="x y"),
    Read("-1 <= a <= 1; a > b > 0", "a b",
         bounds=[lambda n: -1 - n.a, lambda n: n.a - 1, lambda n: n.b - n.a, lambda n: -n.b]),
]  # fmt: skip

DERIVATIVE = "write d(z, t) for the derivative"
SAME_INPUTS = "a law relates values at the same inputs"
CONDITION = "there are no conditions in a formula"
MISTYPED = [
    # code
    Hinted("p[0] + p[1] = 1", "p0 p1", "write the name as in the data", "p0 + p1 = 1"),
    Hinted("df['a'] + df['b'] = 1", "a b", "write the name alone: a", "a + b = 1"),
    Hinted("df.a + df.b = 1", "a b", "a for df.a", "a + b = 1"),
    Hinted("p.sum() = 1", "p1 p2", "sum(a) for a.sum()", "sum(p) = 1"),
    Hinted("lambda a: a + 1", "a b", "FunctionConstraint(function)", ""),
    Hinted("a @ b = 1", "a b", "write the products out", "a*b = 1"),
    Hinted("a + b = 1 # shares", "a b", "leave comments out", "a + b = 1"),
    Hinted("a = b if t > 0 else c", "a b c", CONDITION, ""),
    Hinted("x[t] = x[t-1] + v", "x v", SAME_INPUTS, "d(x, t) = v"),
    Hinted("x(t)^2 + v(t)^2 = 1", "x v", "write x alone", "x^2 + v^2 = 1"),
    Hinted("x(t+1) = x(t) + v", "x v", "d(...) for changes from row to row", "d(x, t) = v"),
    Hinted("x = cumsum(v)", "x v", "write d(x, t) = v", "d(x, t) = v"),
    Hinted("x = shift(v)", "x v", SAME_INPUTS, ""),
    # spreadsheets
    Hinted("a = PI()*b", "a b", "write pi for pi()", "a = pi*b"),
    Hinted("LN(a) = b", "a b", "write ln", "ln(a) = b"),
    Hinted("POWER(a,2) = b", "a b", "write a**b for power(a, b)", "a**2 = b"),
    Hinted("=IF(a>0,b,c)", "a b c", "leave out the = at the start", ""),
    Hinted("C=SUM(A:B)", "A B C", "the names themselves", "C = sum(A, B)"),
    Hinted("[net income] = sales", "net sales", "write `net income` for [net income]", ""),
    Hinted("net income = sales", "net sales", "`net income`", ""),
    Hinted("mass in = mass out", "a b", "`mass in`", ""),
    Hinted("a = 50% b", "a b", "write 50%*b", "a = 50%*b"),
    # LaTeX
    Hinted(r"a_{1} + a_{2} = 1", "a_1 a_2", "e.g. a_1", "a_1 + a_2 = 1"),
    Hinted(r"\alpha + \beta = 1", "alpha beta", "e.g. alpha", "alpha + beta = 1"),
    Hinted("||x|| = 1", "x1 x2", "norm(a) for the length of one", "norm(x) = 1"),
    # products and functions as in a lecture
    Hinted("2a + 3b = 1", "a b", "e.g. 2*a", "2*a + 3*b = 1"),
    Hinted("x = .5y", "x y", "e.g. .5*y", "x = .5*y"),
    Hinted("A = π r²", "A r", "e.g. π*r", "A = π*r²"),
    Hinted("x = r cos φ", "x r φ", "write r*cos(...)", "x = r*cos(φ)"),
    Hinted("d^2x/dt^2 = -x", "x", "write d(z, t, 2)", "d(x, t, 2) = -x"),
    Hinted("u_tt = -u", "u", DERIVATIVE, "d(u, t, 2) = -u"),
    Hinted("a_dot = b", "a b", DERIVATIVE, "d(a, t) = b"),
    Hinted("d/dt(a) = b", "a b", DERIVATIVE, "d(a, t) = b"),
    # sentences
    Hinted("a + b should be 1", "a b", "write =", "a + b = 1"),
    Hinted("a + b conserved", "a b", "write a + b = total", "a + b = total", {"total": 1.0}),
    Hinted("a*b = const.", "a b", "leave out the full stop", "a*b = const", {"const": 1.0}),
    Hinted("a + b = 1 (approximately)", "a b", "+- 0.5 at its end", "a + b = 1 +- 0.5"),
    Hinted("a = b (+- 0.1)", "a b", "leave out the brackets", "a = b +- 0.1"),
    Hinted("sum_i p_i = 1", "p1 p2", "write sum(p)", "sum(p) = 1"),
    Hinted("sum(p_i, i=1..2) = 1", "p1 p2", "write sum(p)", "sum(p) = 1"),
    Hinted("Σ(p) = 1", "p1 p2", "write sum(p)", "sum(p) = 1"),
    Hinted("T(K) = T_C + 273.15", "T_C q", "quoted with backticks: `T(...)`", ""),
]  # fmt: skip
