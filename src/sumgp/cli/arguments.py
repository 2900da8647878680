"""From words on the command line to settings of the estimator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from sumgp.errors import DataError

Laws = Annotated[
    list[str] | None, typer.Option("--law", "--constraint", "-c", help='Law, e.g. "a + b = 1"; may be repeated.')
]
Constants = Annotated[list[str] | None, typer.Option(help="NAME=NUMBER, NAME=unknown or NAME=COLUMN; may be repeated.")]
PlugIn = Annotated[bool, typer.Option("--plug-in", help="Do not average over hyperparameters: faster, bands narrower.")]


def names(text: str, option: str) -> list[str]:
    """Names separated by commas; a name with a comma is quoted with backticks."""
    found: list[str] = []
    for position, part in enumerate(text.split("`")):
        if position % 2:
            found.append(part)
        else:
            found += [word.strip() for word in part.split(",") if word.strip()]
    if not found:
        raise DataError(option, "at least one name", repr(text), "e.g. --outputs z,v")
    if len(set(found)) < len(found):
        raise DataError(option, "names that differ", repr(text), "remove the repetition")
    return found


def constants(texts: Sequence[str]) -> dict[str, Any]:
    """``E=0.8`` a number, ``E=unknown`` to be estimated, ``E=column`` given by a column of the data."""
    found: dict[str, Any] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        name, value = name.strip(), value.strip()
        if not sign or not name or not value:
            raise DataError("--constant", "NAME=VALUE", repr(text), "e.g. --constant E=0.8")
        if name in found:
            raise DataError("--constant", "each constant once", f"{name!r} twice", "remove one")
        found[name] = _number(value)
    return found


def _number(value: str) -> float | str:
    try:
        return float(value)
    except ValueError:
        return value


def extra_columns(given: Mapping[str, Any]) -> list[str]:
    """Columns of the data that constants refer to."""
    return list(dict.fromkeys(v for v in given.values() if isinstance(v, str) and v != "unknown"))


def noise(text: str) -> Any:
    """ "per-output", "shared", one number, or one number per output separated by commas."""
    if text in ("per-output", "shared"):
        return text
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError as error:
        raise DataError("--noise", "'per-output', 'shared' or numbers", repr(text), "e.g. --noise 0.1,0.2") from error
    return values[0] if len(values) == 1 else values
