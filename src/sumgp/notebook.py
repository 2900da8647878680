"""Small HTML tables for notebooks; all text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

LONGEST_CELL = 200  # characters of a value shown


def facts_table(facts: Iterable[tuple[str, object]]) -> str:
    """Two columns: name, value."""
    left = 'style="text-align:left"'
    pairs = ((escape(name), escape(shortened(value))) for name, value in facts)
    return f"<table>{''.join(f'<tr><th {left}>{name}</th><td {left}>{value}</td></tr>' for name, value in pairs)}</table>"


def shortened(value: object, longest: int = LONGEST_CELL) -> str:
    """The value as text, cut where it is long."""
    text = str(value)
    return text if len(text) <= longest else text[: longest - 4] + " ..."


def listed(names: Sequence[str], most: int = 8) -> str:
    """The first names, and how many there are where some are left out."""
    return ", ".join(names[:most]) + (f", ... ({len(names)} in all)" if len(names) > most else "")
