"""Small HTML tables for notebooks; all text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

LONGEST_CELL = 200  # characters of a value shown


def facts_table(facts: Iterable[tuple[str, object]]) -> str:
    """Two columns: name, value."""
    left = 'style="text-align:left"'
    pairs = ((escape(name), escape(_shortened(value))) for name, value in facts)
    return f"<table>{''.join(f'<tr><th {left}>{name}</th><td {left}>{value}</td></tr>' for name, value in pairs)}</table>"


def _shortened(value: object) -> str:
    """The value as text, cut where it is long."""
    text = str(value)
    return text if len(text) <= LONGEST_CELL else text[: LONGEST_CELL - 4] + " ..."


def listed(names: Sequence[str], most: int = 8) -> str:
    """The first names, and how many there are where some are left out."""
    return ", ".join(names[:most]) + (f", ... ({len(names)} in all)" if len(names) > most else "")
