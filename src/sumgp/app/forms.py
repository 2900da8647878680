"""From the fields of a form to a choice."""

from __future__ import annotations

from starlette.datastructures import FormData

from sumgp.app.choice import KERNELS, KINDS, Choice, Constant, TableInfo
from sumgp.app.feedback import INCOMPLETE, MISTAKE, law_feedback
from sumgp.cli.arguments import noise
from sumgp.errors import DataError, worded

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
            raise DataError(worded(name, "at least one column", "none", f"choose {name[:-1]} beside a column"))
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
