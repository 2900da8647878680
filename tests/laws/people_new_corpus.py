"""Formulas with derivatives, bounds and errors as people type them, and slips in any law: what they mean, or the hint."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
from laws.people_corpus import Hinted

Side = Callable[[SimpleNamespace], np.ndarray]


@dataclass(frozen=True)
class Read:
    """Left minus right side of each law by hand (``n.z_t`` is the derivative of z by t), of each bound, and the sds."""

    text: str
    outputs: str
    laws: Sequence[Side] = ()
    bounds: Sequence[Side] = ()
    constants: dict[str, float] = field(default_factory=dict)
    inputs: str = "t"
    sds: Sequence[float] = ()


READ = [
    # chemistry
    Read("dA/dt = −k·A", "A", [lambda n: n.A_t + 2 * n.A], constants={"k": 2.0}),
    Read("d(A,t) = -k*A; A + B = c0", "A B", [lambda n: n.A_t + 2 * n.A, lambda n: n.A + n.B - 1],
         constants={"k": 2.0, "c0": 1.0}),
    Read("v = Vmax*S/(Km + S)", "v S", [lambda n: n.v - 3 * n.S / (2 + n.S)], constants={"Vmax": 3.0, "Km": 2.0}),
    Read("x_A + x_B = 1; 0 ≤ x_A ≤ 1", "x_A x_B", [lambda n: n.x_A + n.x_B - 1], [lambda n: -n.x_A, lambda n: n.x_A - 1]),
    Read("H2 + H2O = total; all ≥ 0", "H2 O2 H2O", [lambda n: n.H2 + n.H2O - 2],
         [lambda n: -n.H2, lambda n: -n.O2, lambda n: -n.H2O], {"total": 2.0}),
    # mechanics
    Read("F = m*dv/dt", "F v", [lambda n: n.F - 2 * n.v_t], constants={"m": 2.0}),
    Read("v = dx/dt; a = d2x/dt2", "x v a", [lambda n: n.v - n.x_t, lambda n: n.a - n.x_tt]),
    Read("(dz)/(dt) = v", "z v", [lambda n: n.z_t - n.v]),
    Read("diff(z, t) = v", "z v", [lambda n: n.z_t - n.v]),
    Read("du/dx + dv/dy = 0", "u v", [lambda n: n.u_x + n.v_y], inputs="x y"),
    Read("L = I·ω ± 0.02", "L ω", [lambda n: n.L - 2 * n.ω], constants={"I": 2.0}, sds=[0.02]),
    Read("E_kin + E_pot = E +- unknown", "E_kin E_pot", [lambda n: n.E_kin + n.E_pot - 3], constants={"E": 3.0},
         sds=[np.nan]),
    # accounting
    Read("profit = sales - costs +/- 100", "profit sales costs", [lambda n: n.profit - n.sales + n.costs], sds=[100.0]),
    Read("d(stock,t) = inflow - outflow; all >= 0", "stock inflow outflow",
         [lambda n: n.stock_t - n.inflow + n.outflow], [lambda n: -n.stock, lambda n: -n.inflow, lambda n: -n.outflow]),
    Read("part <= total", "part total", bounds=[lambda n: n.part - n.total]),
    Read("a < -b", "a b", bounds=[lambda n: n.a + n.b]),
    # ecology
    Read("dn/dt = r*n*(1 - n/K)", "n", [lambda n: n.n_t - 2 * n.n * (1 - n.n / 3)], constants={"r": 2.0, "K": 3.0}),
    Read("Rn − G = H + LE ± 5", "Rn G H LE", [lambda n: n.Rn - n.G - n.H - n.LE], sds=[5.0]),
    Read("sand + silt + clay = 100 ± 0.5; sand ≥ 0", "sand silt clay", [lambda n: n.sand + n.silt + n.clay - 100],
         [lambda n: -n.sand], sds=[0.5]),
    Read("p <= 100%", "p q", bounds=[lambda n: n.p - 1]),
    # geometry
    Read("a >= b >= c", "a b c", bounds=[lambda n: n.b - n.a, lambda n: n.c - n.b]),
    Read("a + b > c", "a b c", bounds=[lambda n: n.c - n.a - n.b]),
    Read("d(x, s)^2 + d(y, s)^2 = 1", "x y", [lambda n: n.x_s**2 + n.y_s**2 - 1], inputs="s"),
]  # fmt: skip

DERIVATIVE = "write d(z, t) for the derivative"
SEVERAL = "separated by ;, each with both of its sides"
SLIPS = [
    # derivatives in other notations
    Hinted("ż = v", "z v", DERIVATIVE, "d(z, t) = v"),
    Hinted("θ̇ = ω", "θ ω", DERIVATIVE, "d(θ, t) = ω"),
    Hinted("x'' + x = 0", "x", DERIVATIVE, "d(x, t, 2) + x = 0"),
    Hinted("z.diff(t) = v", "z v", DERIVATIVE, "d(z, t) = v"),
    Hinted("d/dt z = v", "z v", DERIVATIVE, "d(z, t) = v"),
    Hinted(r"\frac{dz}{dt} = v", "z v", DERIVATIVE, "d(z, t) = v"),
    Hinted(r"\dot{z} = v", "z v", DERIVATIVE, "d(z, t) = v"),
    Hinted("D(z) = v", "z v", DERIVATIVE, "d(z, t) = v"),
    Hinted("deriv(z, t) = v", "z v", DERIVATIVE, "d(z, t) = v"),
    Hinted("Diff(z, t) = v", "z v", DERIVATIVE, "d(z, t) = v"),
    Hinted("z_t = v", "z v", DERIVATIVE, "d(z, t) = v"),
    Hinted("zdot = v", "z v", DERIVATIVE, "d(z, t) = v"),
    Hinted("laplacian(u) = 0", "u", "d(u, x, 2) + d(u, y, 2)", "d(u, t, 2) = 0"),
    Hinted("int(z, t) = w", "z w", "d(integral, t) = z", "d(w, t) = z"),
    # bounds
    Hinted("a, b >= 0", "a b", SEVERAL, "a >= 0; b >= 0"),
    Hinted("a >= 0, b >= 0", "a b", SEVERAL, "a >= 0; b >= 0"),
    Hinted("a >= 0 and b >= 0", "a b", SEVERAL, "a >= 0; b >= 0"),
    Hinted("a > 0 & b > 0", "a b", SEVERAL, "a > 0; b > 0"),
    Hinted("a in [0, 1]", "a b", "write 0 <= a <= 1", "0 <= a <= 1"),
    Hinted("a ∈ [0, 1]", "a b", "write 0 <= a <= 1", "0 <= a <= 1"),
    Hinted("a between 0 and 1", "a b", "write 0 <= a <= 1", "0 <= a <= 1"),
    Hinted("a positive", "a b", "write a >= 0", "a >= 0"),
    Hinted("a <> 0", "a b", "only equalities and bounds", ""),
    Hinted("d(a, t) >= 0", "a b", "not on their derivatives", ""),
    Hinted("a rising", "a b", "not on their derivatives", ""),
    Hinted("a^2 + b^2 <= 1", "a b c", "by the law c = a^2 + b^2, and bound c", "c = a^2 + b^2; c <= 1"),
    Hinted(r"a \geq 0", "a b", "write >=", "a >= 0"),
    # laws that hold roughly
    Hinted("a + b ~ 1", "a b", "+- 0.5 at its end", "a + b = 1 +- 0.5"),
    Hinted("a + b approx 1", "a b", "+- 0.5 at its end", "a + b = 1 +- 0.5"),
    Hinted("a + b = 100 ± 1%", "a b", "in the law's units (not per cent)", "a + b = 100 ± 1"),
    Hinted(r"a + b = 1 \pm 0.1", "a b", "write +- before the size", "a + b = 1 +- 0.1"),
    # spreadsheets and programs
    Hinted("=SUM(a,b)=1", "a b", "leave out the = at the start", "sum(a,b)=1"),
    Hinted("SUM(a;b) = 1", "a b", "separated by commas", "sum(a, b) = 1"),
    Hinted("total <- a + b", "total a b", "write = for an equation", "total = a + b"),
    Hinted("a // b = 2", "a b", "write a/b", "a/b = 2"),
    Hinted("a + b = 1 000", "a b", "1000 without a separator", "a + b = 1000"),
    Hinted("a + b = 1'000", "a b", "1000 without a separator", "a + b = 1000"),
    Hinted("a + b = 1_000", "a b", "1000 without a separator", "a + b = 1000"),
    Hinted("log(a, 10) = b", "a b", "log10(a)", "log10(a) = b"),
    Hinted("log₁₀(a) = b", "a b", "write log10", "log10(a) = b"),
    Hinted("sqr(a) = b", "a b", "a**2 for the square, sqrt(a) for the root", "a**2 = b"),
    Hinted("sin^2 a = b", "a b", "write sin(...)**2", "sin(a)**2 = b"),
    Hinted("ln a = b", "a b", "write ln(...)", "ln(a) = b"),
    Hinted("a plus b = 1", "a b", "write +", "a + b = 1"),
    # chemistry, geometry
    Hinted("2 H2 + O2 → 2 H2O", "H2 O2 H2O", "write what is conserved", "H2 + H2O = total", {"total": 1.0}),
    Hinted("2*H2 + O2 -> 2*H2O", "H2 O2 H2O", "write what is conserved", "H2 + H2O = total", {"total": 1.0}),
    Hinted("[A] + [B] = 1", "A B", "write A for [A]", "A + B = 1"),
    Hinted("Na⁺ + K = 1", "Na+ K", "quoted with backticks", "`Na+` + K = 1"),
    Hinted("F ∝ a", "F a", "a = k*b", "F = k*a", {"k": 1.0}),
    Hinted("A + B + C = 180°", "A B C", "leave it out where all angles are in degrees", "A + B + C = 180"),
]  # fmt: skip
