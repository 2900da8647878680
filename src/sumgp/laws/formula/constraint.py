"""A law given as text; plain sums such as ``k/2*z**2 + m/2*v**2 = E`` are read here with exact fractions.

Whatever is not as plain as that, or might be an error, is left to ``binding``, which knows every law.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from sumgp.errors import ConstraintError
from sumgp.laws.bounds import ALL, BOUNDS_ALONE, no_law
from sumgp.laws.formula import tree
from sumgp.laws.formula.bounds import for_all, linear_row
from sumgp.laws.formula.derivatives import differentiating_inputs, read_derivatives
from sumgp.laws.formula.explain import constant_lines, explain_law
from sumgp.laws.formula.syntax import read_laws, split_laws
from sumgp.laws.law import Constraint, Law, SumLaw
from sumgp.transforms import NAMED_POWERS, Power

MAX_EXPONENT = 64  # as in ``algebra``: what exceeds it gets its error there
_MAX_BITS = 500  # of a numerator or denominator: such numbers are far from the limits of doubles
_CONSTANT = ("", 0)  # no name in a formula is empty

# (name, degree) -> coefficient of name ** degree. A coefficient that cancelled stays, as zero.
Polynomial = Mapping[tuple[str, int], Fraction]


class _NotPlainError(Exception):
    """The law is more than this file reads."""


def plain_law(equations: Sequence[tree.Equation], names: tree.Names) -> SumLaw | None:
    """The law of all equations together; None where one of them is not plain, or their totals may contradict.

    Row r of the result is sum_m F[r, m] h_m(f) = S[r] with h_m the identity or a whole power of one output or unknown.
    """
    try:
        rows = [_plain_row(equation, names) for equation in equations]
    except _NotPlainError:
        return None
    keys = {key for row in rows for key in row if key != _CONSTANT}
    columns = (*names.varying, *(name for name in names.unknowns if any(name == key[0] for key in keys)))
    ordered = sorted(keys, key=lambda key: (columns.index(key[0]), str(key[1]) if key[1] > 1 else ""))
    coefficients = np.array([[float(row.get(key, 0)) for key in ordered] for row in rows])
    sizes = np.max(np.abs(coefficients), axis=1, keepdims=True)
    if len(rows) > 1 and np.linalg.matrix_rank(coefficients / sizes, tol=1e-10) < len(rows):
        return None
    return SumLaw(
        outputs=names.outputs,
        derivatives=tuple(names.derivatives.values()),
        unknowns=columns[len(names.varying) :],
        labels=tuple(equation.text for equation in equations),
        noise=np.zeros(len(rows)),
        columns=tuple((columns.index(name), NAMED_POWERS.get(degree) or Power(degree)) for name, degree in ordered),
        coefficients=coefficients,
        total=np.array([float(-row[_CONSTANT]) for row in rows]),
    )


def _plain_row(equation: tree.Equation, names: tree.Names) -> Polynomial:
    """Left minus right side, the constant included, if it surely restricts an output and surely can be met."""
    reader = _Reader(names)
    row = _added([(1, {_CONSTANT: Fraction(0)}), (1, reader.value(equation.left)), (-1, reader.value(equation.right))])
    terms = {key: value for key, value in row.items() if key != _CONSTANT}
    used = [name for name, _ in terms]
    cancelled = any(value == 0 for value in terms.values())
    if cancelled or len(set(used)) < len(used) or not set(used) & set(names.varying):
        raise _NotPlainError
    if all(degree % 2 == 0 for _, degree in terms):
        # All terms of one sign: the other side must not have the opposite one.
        signs = {value > 0 for value in terms.values()}
        if len(signs) == 1 and (row[_CONSTANT] > 0) == signs.pop() and row[_CONSTANT] != 0:
            raise _NotPlainError
    return row


@dataclass(frozen=True)
class _Reader:
    """Syntax tree to polynomial without mixed terms."""

    names: tree.Names

    def value(self, node: tree.Node) -> Polynomial:
        match node:
            case tree.Number():
                return _constant(node.value)
            case tree.Name():
                return self.named(node.name)
            case tree.Sum():
                return _added([(sign, self.value(term)) for sign, term in node.terms])
            case tree.Product():
                return self.product(node)
            case tree.Power():
                return _raised(self.value(node.base), _as_number(self.value(node.exponent)))
            case tree.Call():
                return self.summed(node)

    def named(self, name: str) -> Polynomial:
        if name in self.names.varying or name in self.names.unknowns:
            return {(name, 1): Fraction(1)}
        number = self.names.number(name)
        if number is None:
            raise _NotPlainError
        return _constant(number)

    def product(self, node: tree.Product) -> Polynomial:
        result = _constant(Fraction(1))
        for sign, factor in node.factors:
            value = self.value(factor)
            if sign == -1:
                value = _raised(_constant(_as_number(value)), Fraction(-1))
            result = (
                _scaled(value, _as_number(result)) if result.keys() == {_CONSTANT} else _scaled(result, _as_number(value))
            )
        return result

    def summed(self, node: tree.Call) -> Polynomial:
        """sum(a, b, ...), or sum(p) over the family p1, p2, ...; the same for mean."""
        if node.function not in ("sum", "mean"):
            raise _NotPlainError
        parts = [self.value(argument) for argument in node.arguments] if len(node.arguments) > 1 else self.family(node)
        share = Fraction(1, len(parts) if node.function == "mean" else 1)
        return _scaled(_added([(1, part) for part in parts]), share)

    def family(self, node: tree.Call) -> list[Polynomial]:
        """p1, p2, ... for the p of sum(p)."""
        body = node.arguments[0]
        if (
            not isinstance(body, tree.Name)
            or self.names.symbol(body.name) is not None
            or self.names.number(body.name) is not None
        ):
            raise _NotPlainError
        family = self.names.family(body.name)
        if not family:
            raise _NotPlainError
        return [self.named(name) for name in family.values()]


def _constant(value: Fraction) -> Polynomial:
    return {_CONSTANT: _limited(value)}


def _as_number(value: Polynomial) -> Fraction:
    if value.keys() != {_CONSTANT}:
        raise _NotPlainError
    return value[_CONSTANT]


def _added(parts: Sequence[tuple[int, Polynomial]]) -> Polynomial:
    result: dict[tuple[str, int], Fraction] = {}
    for sign, part in parts:
        for key, value in part.items():
            result[key] = _limited(result.get(key, Fraction(0)) + sign * value)
    return result


def _scaled(value: Polynomial, factor: Fraction) -> Polynomial:
    return {key: _limited(factor * coefficient) for key, coefficient in value.items()}


def _raised(base: Polynomial, exponent: Fraction) -> Polynomial:
    """A whole power of a number or of one term."""
    if exponent.denominator != 1 or abs(exponent) > MAX_EXPONENT or len(base) != 1:
        raise _NotPlainError
    ((name, degree), value), power = next(iter(base.items())), int(exponent)
    if (name and power < 1) or (power < 1 and value == 0) or degree * power > MAX_EXPONENT:
        raise _NotPlainError
    return {(name, degree * power): _limited(value**power)}


def _limited(value: Fraction) -> Fraction:
    bits = max(value.numerator.bit_length(), value.denominator.bit_length())
    if bits > _MAX_BITS:
        raise _NotPlainError
    return value


class FormulaConstraint(Constraint):
    """One or more equations or bounds between outputs, inputs and constants.

    ``formula``: text, or a list of texts; several laws in one text are separated by ``;`` or line ends. Known are
    + - * / ** ^ ( ) and |a|, sqrt exp log log10 log2 sin cos tan asin acos atan sinh cosh tanh abs, ``sum(p)`` and
    ``mean(p)`` of outputs p1 ... pk or ``all``, ``norm(a, b)`` for the distance of points with coordinates a_x, a_y[, a_z],
    ``d(z, t)`` and ``d(z, t, 2)`` for derivatives of outputs by inputs (also ``dz/dt``), the numbers pi and e, percentages
    (100% is 1), and signs such as ², ½, ·. Names with spaces or signs are quoted with backticks. A law that ends in
    ``+- 0.5`` (or ± 0.5) holds up to an error of that standard deviation, one that ends in ``+- unknown`` up to an error
    whose mean and size are estimated from the rows that were measured completely. Bounds are linear in the outputs:
    ``a >= 0``, ``0 <= p <= 1``, ``a + b <= capacity``, ``all >= 0`` for every output; < and > mean the same as <= and >=.

    ``constants``: a number; "unknown" for a constant that is estimated; a function of X (n, D) giving (n,); or the name
    of a data column, which is then needed for predictions too.

    The text is read by a parser of our own and never executed; a syntax error is raised here, an unknown name by ``bind``.
    """

    def __init__(self, formula: str | Sequence[str], constants: Mapping[str, object] | None = None) -> None:
        texts = (formula,) if isinstance(formula, str) else tuple(formula)
        if not all(isinstance(text, str) for text in texts):
            raise ConstraintError("formula", "text or a list of texts", repr(formula)[:60], 'write "z + v = 1"')
        self.texts: tuple[str, ...] = texts
        self.constants: dict[str, tree.Constant] = tree.read_constants(constants)
        self.laws: tuple[str, ...] = tuple(law for text in texts for law in split_laws(text))
        if not self.laws:
            raise ConstraintError("formula", "at least one equation", "empty text", 'write "z + v = 1"')
        self._laws, self._texts, self._tolerances, self._bounds = read_laws(self.laws)
        self._sides = tuple(side for equation in (*self._laws, *self._bounds) for side in (equation.left, equation.right))

    def uses(self, name: str) -> bool:
        """True if a law mentions a name, or, in sum(...) and norm(...), the family that it may belong to."""
        if any(name in tree.mentioned(side) for side in self._sides):
            return True
        inside = [call for side in self._sides for group in ("sum", "mean", "norm") for call in tree.calls(side, group)]
        return any(name.startswith(family) or family == ALL for call in inside for family in tree.mentioned(call))

    def bind(self, outputs: Sequence[str], inputs: Sequence[str] = ()) -> Law:
        """Return a SumLaw if every equation is linear or a sum of transforms of single outputs, else a FunctionLaw.

        Derivatives and unknown constants become columns of f after the outputs, data columns become columns of x after the
        inputs.
        """
        if not self._laws:
            return no_law(outputs)
        equations, names = self._laws, tree.read_names(outputs, inputs, self.constants)
        if any("d" in text.lower() or "∂" in text for text in self._texts):  # d(z, t), diff(z, t), dz/dt, ∂z/∂t
            equations, names = read_derivatives(equations, names)
        law = _law_of(equations, names)
        return law if np.all(self._tolerances == 0) else replace(law, noise=self._tolerances, labels=self._texts)

    def bounds(self, outputs: Sequence[str], inputs: Sequence[str] = ()) -> tuple[SumLaw, ...]:
        """Linear laws whose residual is to be zero or less, one for each bound; ``all`` stands for every output."""
        names = tree.read_names(outputs, inputs, self.constants)
        bounds = [bound for given in self._bounds for bound in for_all(given, names)]
        return tuple(linear_row(_law_of([bound], names), bound.text) for bound in bounds)

    def check_columns(self, outputs: Sequence[str], inputs: Sequence[str], columns: Collection[str]) -> None:
        """Raise ConstraintError for a name that stands for nothing while the data have a column of that name."""
        names = tree.read_names(outputs, inputs, self.constants)
        for leaf in (leaf for side in self._sides for leaf in tree.names_in(side)):
            name = leaf.name
            meant = name in (*names.known, ALL) or names.family(name) or names.coordinates([name])
            if not meant and name in columns:
                raise leaf.place.error(
                    f"{name!r} is not an output, input or constant, but the data have a column {name!r}: did you mean "
                    f"constants={{{name!r}: {name!r}}}, or --constant {name}={name} on the command line? What is to be "
                    "predicted belongs to the outputs"
                )

    def in_one_unit(self, outputs: Sequence[str], inputs: Sequence[str] = ()) -> tuple[tuple[str, ...], ...]:
        """The coordinates in each norm(...) of the formula."""
        names = tree.read_names(outputs, inputs, self.constants)
        found = []
        for call in (call for side in self._sides for call in tree.calls(side, "norm")):
            points = [argument.name for argument in call.arguments if isinstance(argument, tree.Name)]
            coordinates = names.coordinates(points) or []
            found.append(tuple(name for point in coordinates for name in point if name in names.outputs))
        return tuple(found)

    def __str__(self) -> str:
        """How the laws are understood if every name that is no constant is an output."""
        names = [name for side in self._sides for name in tree.mentioned(side)]
        inputs = list(dict.fromkeys(name for side in self._sides for name in differentiating_inputs(side)))
        other = (*self.constants, *tree.BUILT_IN, *inputs, ALL)
        outputs = [name for name in dict.fromkeys(names) if name not in other]
        try:
            explanation = explain_law(self.bind(outputs, inputs)) if self._laws else BOUNDS_ALONE
        except ConstraintError:
            # Families such as sum(p) and norm(a, b) can only be understood with the names of the outputs.
            explanation = "kind: known once the outputs are named"
        bounds = {bound.text for bound in self._bounds}
        lines = [f"{'bound' if law in bounds else 'law'}: {law}" for law in self.laws]
        return "\n".join([*lines, *constant_lines(self.constants), explanation])

    def __repr__(self) -> str:
        formula = self.texts[0] if len(self.texts) == 1 else list(self.texts)
        return f"FormulaConstraint({formula!r}, constants={self.constants!r})"


def _law_of(equations: Sequence[tree.Equation], names: tree.Names) -> Law:
    """The law of all equations together."""
    law = plain_law(equations, names)
    if law is not None:
        return law
    # Loading computer algebra takes longer than most fits: only laws that need it pay for it.
    from sumgp.laws.formula.binding import build_law

    return build_law(equations, names)


def parse_constraint(
    text: str | Sequence[str],
    outputs: Sequence[str],
    inputs: Sequence[str] = (),
    constants: Mapping[str, object] | None = None,
) -> Law:
    """Return the law of a formula for these outputs and inputs; see FormulaConstraint.

    >>> law = parse_constraint("a + b = 1", ["a", "b"])
    >>> law.is_linear, law.as_matrix().tolist(), law.total.tolist()
    (True, [[1.0, 1.0]], [1.0])
    """
    return FormulaConstraint(text, constants).bind(outputs, inputs)
