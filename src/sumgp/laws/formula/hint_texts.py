"""What to write in place of characters, functions and words that a formula does not have."""

from __future__ import annotations

FUNCTIONS = (
    "sqrt", "exp", "log", "log10", "log2", "sin", "cos", "tan", "asin", "acos",
    "atan", "sinh", "cosh", "tanh", "abs", "sum", "mean", "norm",
)  # fmt: skip

# Other names of functions.
ALIASES = {"ln": "log", "arcsin": "asin", "arccos": "acos", "arctan": "atan"}

QUOTES = "names with spaces or signs are quoted with backticks: `CO2 (ppm)`"
DERIVATIVE = "write d(z, t) for the derivative of the output z with respect to the input t, d(z, t, 2) for the second"
SUM = "write sum(p) for p1 + p2 + ... + pk, or write all terms out"
DIGITS = "write 1000 without a separator"
ROUGH = "write = for an exact law, and +- 0.5 at its end for a rough one"
RANGE = "write 0 <= a <= 1 for a range"
SEVERAL = "write several laws separated by ;, each with both of its sides: a >= 0; b >= 0"
ARROW = "a reaction is not an equation of amounts: write what is conserved, e.g. H2 + H2O = total for 2 H2 + O2 -> 2 H2O"
REACTION = f"is not part of a formula; {ARROW}"
SLOPE = "bounds are put on outputs, not on their derivatives: a curve cannot be made to rise or fall"
INTEGRAL = "integrals are not part of a formula; make the integral an output of its own: d(integral, t) = z"
LENGTH = "write norm(a, b) for the distance between two points, norm(a) for the length of one"
CONDITION = (
    "there are no conditions in a formula; give a FunctionConstraint, or a factor that is a data column with 1 where the "
    "law holds and 0 elsewhere"
)
ROWS = "a law relates values at the same inputs; for changes from one row to the next write the derivative d(x, t)"
CHARACTERS = {
    "`": "this backtick opens a quoted name that is never closed",
    '"': QUOTES,
    "’": DERIVATIVE,
    "′": DERIVATIVE,
    "∇": DERIVATIVE,
    "∫": INTEGRAL,
    "∑": SUM,
    "∏": "write the factors out with *",
    "…": SUM,
    **dict.fromkeys("[]", "write A for [A], sum(p) for a sum, and a name with spaces or signs in backticks: `Na+`"),
    "{": "group with round brackets",
    "}": "group with round brackets",
    "\\": "LaTeX is not read: write (a)/(b) for a fraction, sqrt(a) for a root, a*b for a product, z**2 for a power",
    "$": "leave dollar signs out",
    ":": "write = for an equation, a/b for a ratio a:b, and the names themselves (or sum(p)) for a range",
    "~": ROUGH,
    "∝": "write = with a constant: a = k*b",
    "∈": RANGE,
    **dict.fromkeys("→⟶⇌⇄↔", ARROW),
    ";": "what is listed in brackets is separated by commas: sum(a, b)",
    "?": "a constant that is not known gets a name; give it the value unknown",
    "°": "leave it out where all angles are in degrees; functions take radians: sin(pi/180*z)",
    "∠": "leave it out: the names are enough",
    **dict.fromkeys("⁺⁻", QUOTES),
    **dict.fromkeys("\u0307\u0308", DERIVATIVE),  # dots above a letter
    "∞": "a formula holds finite numbers only",
    "‖": LENGTH,
    "#": "leave comments out of the law",
    "@": "write the products out: a1*b1 + a2*b2",
    "!": "factorials are not part of a formula; write the number",
    "&": SEVERAL,
    "∧": SEVERAL,
}
OTHER = "a formula holds names, numbers, + - * / ** ^ ( ) | , and one = or bounds <= >="

ANGLE = "write the law by its parts: y = r*sin(phi); x = r*cos(phi). (atan(y/x) is the same only where x > 0)"

# Functions that people know from elsewhere, and what to write for them.
INSTEAD = {
    "pow": "write a**b for pow(a, b)",
    "power": "write a**b for power(a, b)",
    "square": "write a**2",
    "sqr": "write a**2 for the square, sqrt(a) for the root",
    "cbrt": "write a**(1/3)",
    "root": "write sqrt(a), or a**(1/3) for other roots",
    "lg": "write log10 or log2, whichever is meant",
    **dict.fromkeys(("ld", "lb", "log_2"), "write log2"),
    "log1p": "write log(1 + a)",
    "expm1": "write exp(a) - 1",
    "exp2": "write 2**a",
    "exp10": "write 10**a",
    "log_10": "write log10",
    "log_e": "write log",
    "cot": "write 1/tan(a)",
    "sec": "write 1/cos(a)",
    "csc": "write 1/sin(a)",
    "asinh": "write log(a + sqrt(a**2 + 1))",
    "acosh": "write log(a + sqrt(a**2 - 1))",
    "atanh": "write log((1 + a)/(1 - a))/2",
    "sinc": "write sin(a)/a",
    "sind": "angles are in radians: write sin(pi/180*a)",
    "cosd": "angles are in radians: write cos(pi/180*a)",
    "tand": "angles are in radians: write tan(pi/180*a)",
    "rad": "write pi/180*a",
    "radians": "write pi/180*a",
    "deg": "write 180/pi*a",
    "degrees": "write 180/pi*a",
    "logit": "write log(p/(1 - p))",
    **dict.fromkeys(("expit", "sigmoid"), "write 1/(1 + exp(-a))"),
    "dot": "write the products of the coordinates out: a_x*b_x + a_y*b_y",
    "cross": "write the products of the coordinates out: a_x*b_y - a_y*b_x",
    **dict.fromkeys(("dist", "distance"), "write norm(a, b) for the distance between two points"),
    "hypot": "write sqrt(a**2 + b**2)",
    **dict.fromkeys(("prod", "product"), "write the factors out with *"),
    "total": "write sum(p) for p1 + p2 + ... + pk",
    **dict.fromkeys(("avg", "average"), "write mean(a, b)"),
    "der": DERIVATIVE,
    **dict.fromkeys(("grad", "diff", "derivative", "deriv", "dt"), DERIVATIVE),
    "div": "write the derivatives out: d(u, x) + d(v, y)",
    "curl": "write the derivatives out: d(v, x) - d(u, y)",
    **dict.fromkeys(("laplacian", "laplace"), "write the derivatives out: d(u, x, 2) + d(u, y, 2)"),
    "σ": SUM,  # Σ in lower case
    **dict.fromkeys(("integral", "integrate", "int"), INTEGRAL),
    **dict.fromkeys(("cumsum", "cumulative", "running"), "write d(x, t) = v for the running total x of v"),
    **dict.fromkeys(("shift", "lag", "lead"), ROWS),
    **dict.fromkeys(("atan2", "arctan2"), ANGLE),
}
CORNERS = (
    "max", "min", "maximum", "minimum", "sign", "floor", "ceil", "round",
    "mod", "if", "where", "clip", "median", "heaviside", "step",
)  # fmt: skip
CORNER = (
    "has corners or jumps, which a law imposed by linearisation cannot follow; state the law on each side with a "
    "FunctionConstraint, or make the value of {name}(...) an output or a data column of its own"
)
# Words between two operands.
WORDS = {
    **{"plus": "write +", "minus": "write -", "times": "write *", "over": "write /"},
    **dict.fromkeys(("equals", "equal", "is", "are", "should", "must"), "write ="),
    **dict.fromkeys(("and", "or"), SEVERAL),
    **dict.fromkeys(("if", "else", "where", "for", "when"), CONDITION),
    **dict.fromkeys(("in", "between", "within"), RANGE),
    **dict.fromkeys(("approx", "about", "roughly"), ROUGH),
    **dict.fromkeys(("positive", "nonnegative"), "write a >= 0"),
    **dict.fromkeys(("rising", "increasing", "falling", "decreasing", "monotonic", "monotone"), SLOPE),
    **dict.fromkeys(("conserved", "constant"), 'write a + b = total; a total that is not known gets the value "unknown"'),
    "mod": "mod has jumps; make its value an output or a data column of its own",
}
LATEX = {
    **dict.fromkeys(("dot", "ddot", "partial", "nabla"), DERIVATIVE),
    **dict.fromkeys(("cdot", "times", "ast"), "write *"),
    **dict.fromkeys(("le", "leq", "leqslant"), "write <="),
    **dict.fromkeys(("ge", "geq", "geqslant"), "write >="),
    **dict.fromkeys(("approx", "sim", "simeq"), ROUGH),
    **dict.fromkeys(("left", "right", "mathrm", "text"), "leave it out"),
    **{"pm": "write +- before the size of the law's error", "sum": SUM, "int": INTEGRAL, "in": RANGE},
}
GREEK = (
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "kappa", "lambda", "mu",
    "nu", "xi", "rho", "sigma", "tau", "phi", "chi", "psi", "omega",
)  # fmt: skip
