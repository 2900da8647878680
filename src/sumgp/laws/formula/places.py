"""Places in a law's text, and errors that point at them with a caret."""

from __future__ import annotations

from dataclasses import dataclass

from sumgp.errors import ConstraintError

_WINDOW = 100  # characters of a long law shown around the place


@dataclass(frozen=True)
class Place:
    """The characters ``text[start:end]`` of one law."""

    text: str
    start: int
    end: int

    def error(self, message: str) -> ConstraintError:
        """Return the error that shows the law's text with carets under this place.

        formula: unknown name 'zz' - did you mean 'z'?
            zz**2 + v**2 = 1
            ^^
        """
        first = 0 if len(self.text) <= _WINDOW else max(0, self.start - _WINDOW // 2)
        shown = self.text[first : first + _WINDOW]
        lead, tail = ("..." if first else ""), ("..." if first + _WINDOW < len(self.text) else "")
        width = max(1, min(self.end, first + _WINDOW) - self.start)
        # Characters that are no ordinary text (tabs, control codes) would move the caret or hide themselves.
        line = "".join(c if c.isprintable() else "?" for c in shown)
        return ConstraintError(
            f"formula: {message}\n    {lead}{line}{tail}\n    {' ' * (len(lead) + self.start - first)}{'^' * width}"
        )
