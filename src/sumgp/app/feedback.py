"""From the fields of a form to a choice, and how its law is understood while it is typed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from starlette.datastructures import FormData

from sumgp.app.choice import KERNELS, KINDS, Choice, Constant, TableInfo
from sumgp.cli.arguments import noise
from sumgp.errors import ConstraintError, DataError
from sumgp.laws import FormulaConstraint, bind_constraint
from sumgp.laws.formula import constant_names, in_plain_words, near_name

EMPTY, UNDERSTOOD, INCOMPLETE, MISTAKE = "empty", "understood", "incomplete", "mistake"
SAYS = "This is what the law means for predictions:"
PLACEHOLDER = 1.0  # stands for a constant without a value, to look for other mistakes already
MEANT = re.compile(r"did you mean '([^']+)'\?")
INDENT = 4  # spaces before the law in an error's text


@dataclass(frozen=True)
class Repair:
    """Put ``text`` in the place of the characters ``start`` to ``end`` of the law."""

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Feedback:
    """``state`` is one of the four words above; ``shown`` and ``carets`` are two lines that point at a mistake.

    ``plain`` says what an understood law asks of predictions, ``lines`` how it is imposed.
    """

    state: str
    message: str
    plain: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    shown: str = ""
    carets: str = ""
    place: Repair | None = None
    repairs: tuple[Repair, ...] = ()
    constants: tuple[Constant, ...] = ()


def law_feedback(choice: Choice, columns: Sequence[str]) -> Feedback:
    """What the page says of the law; ``columns`` are those of the table that hold numbers."""
    if not choice.law.strip():
        return Feedback(
            EMPTY, "No law yet. Without one the outputs are fitted together, but nothing ties them to each other."
        )
    if not choice.outputs or not choice.inputs:
        return Feedback(INCOMPLETE, "Choose at least one input and one output first.", constants=choice.constants)
    try:
        names = constant_names(choice.law, choice.outputs, choice.inputs)
    except ConstraintError as error:
        return _mistake(error, choice.law, choice.constants)
    given = {constant.name: constant for constant in choice.constants}
    constants = tuple(given.get(name, _first_guess(name, choice, columns)) for name in names)
    values = {c.name: PLACEHOLDER if c.value is None else c.value for c in constants}
    extra = tuple(dict.fromkeys(c.column for c in constants if c.kind == "column" and c.column not in ("", *choice.inputs)))
    try:
        both = bind_constraint(FormulaConstraint(choice.law, values), choice.outputs, choice.inputs, extra)
        explained = tuple(both.explain().splitlines())
    except ConstraintError as error:
        return _mistake(error, choice.law, constants)
    missing = [c.name for c in constants if c.value is None]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        message = f"Below, say what {' and '.join(missing)} {verb}: a number, unknown, or a column."
        repairs = tuple(r for name in missing for r in _renamed(name, choice))
        return Feedback(INCOMPLETE, message, repairs=repairs, constants=constants)
    plain = [] if both.law is None else in_plain_words(both.law, choice.inputs)
    if both.bounds is not None:
        plain += [f"{label}: no prediction crosses this bound." for label in dict.fromkeys(both.bounds.labels)]
        plain += [f"{text[0].upper()}{text[1:]}." for text in both.conflicts()]
    return Feedback(UNDERSTOOD, SAYS, tuple(plain), explained, constants=constants)


def _first_guess(name: str, choice: Choice, columns: Sequence[str]) -> Constant:
    """A column of that name gives the constant, until something else is chosen."""
    free = name in columns and name not in (*choice.outputs, *choice.inputs)
    return Constant(name, "column", "", name) if free else Constant(name)


def _mistake(error: ConstraintError, law: str, constants: tuple[Constant, ...]) -> Feedback:
    lines = str(error).splitlines()
    message = lines[0].removeprefix("formula: ")
    message = message[0].upper() + message[1:]
    if len(lines) != 3 or set(lines[2].strip()) != {"^"}:
        return Feedback(MISTAKE, message, constants=constants)
    shown, carets = lines[1][INDENT:], lines[2][INDENT:]
    start = law.find(shown)
    if start < 0:
        return Feedback(MISTAKE, message, shown=shown, carets=carets, constants=constants)
    place = Repair("", start + carets.index("^"), start + len(carets))
    meant = MEANT.search(lines[0])
    repairs = (Repair(meant[1], place.start, place.end),) if meant else ()
    return Feedback(MISTAKE, message, (), (), shown, carets, place, repairs, constants)


def _renamed(name: str, choice: Choice) -> list[Repair]:
    """A name without a value may be a column that was mistyped."""
    meant = near_name(name, [*choice.outputs, *choice.inputs])
    where = re.search(rf"(?<![\w`]){re.escape(name)}(?![\w`])", choice.law)
    return [Repair(meant, where.start(), where.end())] if meant and where else []


MANY_COLUMNS = 12  # of a table above which outputs are not guessed


def choice_of(form: FormData, info: TableInfo) -> Choice:
    """What the form says; unknown words count as not filled in."""
    roles = {column.name: _text(form, f"role-{i}") for i, column in enumerate(info.columns) if column.is_number}
    kernel = _text(form, "kernel")
    return Choice(
        inputs=tuple(name for name, role in roles.items() if role == "input"),
        outputs=tuple(name for name, role in roles.items() if role == "output"),
        law=_text(form, "law").replace("\r\n", "\n"),
        constants=_constants(form, info),
        kernel=kernel if kernel in KERNELS else "",
        noise=_text(form, "noise").strip() or "per-output",
        quick=_text(form, "quick") == "yes",
    )


def check_choice(choice: Choice, info: TableInfo) -> None:
    """Refuse what cannot be fitted, before a process is started; DataError says what to do."""
    for name, columns in (("inputs", choice.inputs), ("outputs", choice.outputs)):
        if not columns:
            raise DataError(name, "at least one column", "none", f"choose {name[:-1]} beside a column")
    found = law_feedback(choice, info.numbers)
    if found.state in (MISTAKE, INCOMPLETE):
        raise DataError(f"The law: {found.message}")
    if any(c.kind == "column" and c.column == "unknown" for c in choice.constants):
        raise DataError("A column named 'unknown' cannot give a constant; rename the column.")
    noise(choice.noise)


def first_choice(info: TableInfo) -> Choice:
    """A guess for a new table: the first column of numbers is the input, the others are outputs if they are few."""
    numbers = info.numbers
    return Choice(numbers[:1], numbers[1:] if len(numbers) <= MANY_COLUMNS else ())


def _constants(form: FormData, info: TableInfo) -> tuple[Constant, ...]:
    fields = [form.getlist(f"constant-{part}") for part in ("name", "kind", "number", "column")]
    rows = zip(*fields, strict=False)
    found = {}
    for name, kind, number, column in rows:
        known_kind = str(kind) if kind in KINDS else "number"
        known_column = str(column) if column in info.numbers else ""
        found[str(name)] = Constant(str(name), known_kind, str(number), known_column)
    return tuple(found.values())


def _text(form: FormData, name: str) -> str:
    value = form.get(name, "")
    return value if isinstance(value, str) else ""
