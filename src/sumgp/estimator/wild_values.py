"""What is said of values that are far outside the others of their output."""

from __future__ import annotations

from dataclasses import dataclass

from sumgp.errors import counted

NAMED_ROWS = 5  # in one warning


@dataclass(frozen=True)
class WildValues:
    """Values of one output that are far outside its others: equal ones that are a code, or all that are none."""

    output: str
    rows: tuple[int, ...]  # as given by the user, from 0
    value: float  # in the first of these rows
    rest: tuple[float, float]  # from and to
    is_code: bool

    @property
    def words(self) -> str:
        """What was found and what to do."""
        others = f"the other values of {self.output!r} lie between {self.rest[0]:.4g} and {self.rest[1]:.4g}"
        place = f"row {self.rows[0]}, output {self.output!r} is {self.value:g}"
        more = len(self.rows) - 1
        if self.is_code:
            count = f" ({more + 1} such values)" if more else ""
            return f'Y: {place}{count}, while {others}: probably a code for "missing"; write NaN if it is one'
        named = ", ".join(map(str, self.rows[1:NAMED_ROWS])) + (", ..." if len(self.rows) > NAMED_ROWS else "")
        also = f" ({counted(more, 'more value')} as far outside, {'row' if more == 1 else 'rows'} {named})" if more else ""
        return (
            f"Y: {place}{also}, while {others}: no noise explains both, so that the fit now treats {self.output!r} as "
            f"very noisy; correct {'them' if more else 'the value'}, or write NaN where nothing was measured"
        )
