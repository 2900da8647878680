"""Laws written as formulas: ``FormulaConstraint("k/2*z**2 + m/2*v**2 = E", constants={"k": 1, "m": 1, "E": 0.8})``."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from sumgp.errors import ConstraintError, worded
from sumgp.laws.bounds import no_law
from sumgp.laws.constraint import Constraint
from sumgp.laws.formula.bounds import ALL, bound_row, for_all, law_of
from sumgp.laws.formula.names import BUILT_IN, UNKNOWN, Constant, read_constants, read_names
from sumgp.laws.formula.syntax import parse_bounds, parse_equation, split_laws
from sumgp.laws.formula.tree import Name, calls, mentioned, names_in
from sumgp.laws.law import Law, SumLaw


BOUNDS_ALONE = "strategy: Unconstrained, because there are only bounds, which predictions are moved into"


class FormulaConstraint(Constraint):
    """One or more equations or bounds between outputs, inputs and constants.

    ``formula``: text, or a list of texts; several laws in one text are separated by ``;`` or line ends. Known are
    + - * / ** ^ ( ) and |a|, sqrt exp log log10 log2 sin cos tan asin acos atan sinh cosh tanh abs, ``sum(p)`` and
    ``mean(p)`` for outputs p1 ... pk, ``norm(a, b)`` for the distance of points with coordinates a_x, a_y[, a_z], the
    numbers pi and e, percentages (100% is 1), and signs such as ², ½, ·. Names with spaces or signs are quoted with
    backticks. Bounds are linear in the outputs: ``a >= 0``, ``0 <= p <= 1``, ``a + b <= capacity``, ``all >= 0`` for
    every output; < and > mean the same as <= and >=.

    ``constants``: a number; "unknown" for a constant that is estimated; a function of X (n, D) giving (n,); or the name
    of a data column, which is then needed for predictions too.

    The text is read by a parser of our own and never executed; a syntax error is raised here, an unknown name by ``bind``.
    """

    def __init__(self, formula: str | Sequence[str], constants: Mapping[str, object] | None = None) -> None:
        texts = (formula,) if isinstance(formula, str) else tuple(formula)
        if not all(isinstance(text, str) for text in texts):
            raise ConstraintError(worded("formula", "text or a list of texts", repr(formula)[:60], 'write "z + v = 1"'))
        self.texts: tuple[str, ...] = texts
        self.constants: dict[str, Constant] = read_constants(constants)
        self.laws: tuple[str, ...] = tuple(law for text in texts for law in split_laws(text))
        if not self.laws:
            raise ConstraintError(worded("formula", "at least one equation", "empty text", 'write "z + v = 1"'))
        pairs = [(law, parse_bounds(law)) for law in self.laws]
        self._bounds = tuple(bound for _, bounds in pairs for bound in bounds)
        self._laws = tuple(parse_equation(law) for law, bounds in pairs if not bounds)
        self._equations = (*self._laws, *self._bounds)

    @property
    def is_storable(self) -> bool:
        """True if the constraint can be written to a file: no constant is a Python function."""
        return not any(callable(value) for value in self.constants.values())

    def uses(self, name: str) -> bool:
        """True if a law mentions a name, or, in sum(...) and norm(...), the family that it may belong to."""
        sides = [side for equation in self._equations for side in (equation.left, equation.right)]
        if any(name in mentioned(side) for side in sides):
            return True
        inside = [call for side in sides for function in ("sum", "norm") for call in calls(side, function)]
        return any(name.startswith(family) for call in inside for family in mentioned(call))

    def bind(self, outputs: Sequence[str], inputs: Sequence[str] = ()) -> Law:
        """Return a SumLaw if every equation is linear or a sum of transforms of single outputs, else a FunctionLaw.

        Unknown constants become columns of f after the outputs, data columns become columns of x after the inputs.
        """
        names = read_names(outputs, inputs, self.constants)
        return law_of(self._laws, names) if self._laws else no_law(outputs)

    def bounds(self, outputs: Sequence[str], inputs: Sequence[str] = ()) -> tuple[SumLaw, ...]:
        """Linear laws whose residual is to be zero or less, one for each bound; ``all`` stands for every output."""
        names = read_names(outputs, inputs, self.constants)
        return tuple(bound_row(bound, names) for given in self._bounds for bound in for_all(given, names))

    def check_columns(self, outputs: Sequence[str], inputs: Sequence[str], columns: Collection[str]) -> None:
        """Raise ConstraintError for a name that stands for nothing while the data have a column of that name."""
        names = read_names(outputs, inputs, self.constants)
        for leaf in (leaf for e in self._equations for side in (e.left, e.right) for leaf in names_in(side)):
            name = leaf.name
            meant = name in (*names.known, ALL) or names.family(name) or names.coordinates([name])
            if not meant and name in columns:
                raise leaf.place.error(
                    f"{name!r} is no output, input or constant, but the data have a column {name!r}: did you mean "
                    f"constants={{{name!r}: {name!r}}}, or --constant {name}={name} on the command line?"
                )

    def in_one_unit(self, outputs: Sequence[str], inputs: Sequence[str] = ()) -> tuple[tuple[str, ...], ...]:
        """The coordinates in each norm(...) of the formula."""
        names = read_names(outputs, inputs, self.constants)
        found = []
        for call in (call for e in self._equations for side in (e.left, e.right) for call in calls(side, "norm")):
            points = [argument.name for argument in call.arguments if isinstance(argument, Name)]
            coordinates = names.coordinates(points) or []
            found.append(tuple(name for point in coordinates for name in point if name in names.outputs))
        return tuple(found)

    def __str__(self) -> str:
        """How the laws are understood if every name that is no constant is an output."""
        names = [
            name for equation in self._equations for side in (equation.left, equation.right) for name in mentioned(side)
        ]
        outputs = [n for n in dict.fromkeys(names) if n not in self.constants and n not in BUILT_IN and n != ALL]
        try:
            explanation = explain_law(self.bind(outputs)) if self._laws else BOUNDS_ALONE
        except ConstraintError:
            # Families such as sum(p) and norm(a, b) can only be understood with the names of the outputs.
            explanation = "kind: known once the outputs are named"
        bounds = {bound.text for bound in self._bounds}
        lines = [f"{'bound' if law in bounds else 'law'}: {law}" for law in self.laws]
        return "\n".join([*lines, *self._constant_lines(), explanation])

    def __repr__(self) -> str:
        formula = self.texts[0] if len(self.texts) == 1 else list(self.texts)
        return f"FormulaConstraint({formula!r}, constants={self.constants!r})"

    def _constant_lines(self) -> list[str]:
        def phrase(value: Constant) -> str:
            if callable(value):
                return "a function of the inputs"
            if isinstance(value, float):
                return f"{value:g}"
            return "unknown, to be estimated" if value == UNKNOWN else f"the data column {value!r}"

        return [f"constant {name}: {phrase(value)}" for name, value in self.constants.items()]


def parse_constraint(
    text: str | Sequence[str],
    outputs: Sequence[str],
    inputs: Sequence[str] = (),
    constants: Mapping[str, object] | None = None,
) -> Law:
    """Return the law of a formula for these outputs and inputs; see FormulaConstraint.

    Examples
    --------
    >>> law = parse_constraint("a + b = 1", ["a", "b"])
    >>> law.is_linear, law.as_matrix().tolist(), law.total.tolist()
    (True, [[1.0, 1.0]], [1.0])
    """
    return FormulaConstraint(text, constants).bind(outputs, inputs)


def explain_law(law: Law, text: str = "") -> str:
    """Several lines: the text, kind and terms as understood, data columns needed, and the strategy chosen for it and why."""
    lines = [f"law: {text}"] if text else []
    lines.append(law.explain())
    if law.extra_columns:
        lines.append("data columns needed, also for predictions: " + ", ".join(law.extra_columns))
    return "\n".join([*lines, f"strategy: {_strategy(law)}"])


def _strategy(law: Law) -> str:
    if not isinstance(law, SumLaw):
        return "Linearized, because a term is not a transform of a single output"
    if law.is_linear:
        return "Conditioned, because the law is linear: conditioning the prior on it is exact"
    names = law.outputs + law.unknowns
    curved = [transform.label(names[column]) for column, transform in law.columns if not transform.is_identity]
    verb = "is" if len(curved) == 1 else "are"
    return f"Linearized, because {', '.join(curved)} {verb} not linear; Transformed is possible too"
