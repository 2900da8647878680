"""Colours of figures: one light and one dark theme."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Theme:
    """Colours of a figure; ``cycle`` is told apart also by colour-blind readers."""

    name: str
    ink: str
    faint: str
    panel: str
    cycle: tuple[str, ...]


LIGHT = Theme("light", "#1c2733", "#8a97a5", "#ffffff", ("#1f6fb4", "#d9661f", "#1b8a6b", "#6d1a56", "#665200", "#5b6b7a"))
DARK = Theme("dark", "#dde5ee", "#74828f", "#171d24", ("#6cb2f2", "#f2a05c", "#5fd0ac", "#ffc9ef", "#fff0a0", "#a9b8c6"))
