"""Values that cannot be meant: far outside all others of their output, or codes for "missing"."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sumgp.data.table import Data, in_bulk
from sumgp.errors import SumGPWarning

# Codes that instruments and file formats write for "missing": -999, 9999.0, 99.99e3 and the like, and fill values.
NINES = tuple(10.0**digits - 1.0 for digits in range(3, 10))
DECIMAL_NINES = (999.9, 999.99, 9999.9, 99999.9)
FILL_VALUES = (1e20, 1e30, 1e34, 1e35, 1e36, 32767.0, 32768.0, 2147483647.0, 2147483648.0, 9.969209968386869e36)
CODES = (*NINES, *DECIMAL_NINES, *FILL_VALUES)
SAME_CODE = 1e-6  # relative; single precision has rounded some of them
MOST_NAMED = 5  # in warnings of one fit
FAR = 5.0  # times further from the median of the rest than any of the rest


@dataclass(frozen=True)
class WildValues:
    """Equal or single values of one output that are far outside its others."""

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
        if self.is_code:
            count = f" ({len(self.rows)} such values)" if len(self.rows) > 1 else ""
            return f'Y: {place}{count}, while {others}: probably a code for "missing"; write NaN if it is one'
        return (
            f"Y: {place}, while {others}: no noise explains both, and the fit now takes {self.output!r} for very noisy; "
            "correct the value, or write NaN if it was not measured"
        )


def find_wild_values(data: Data) -> tuple[WildValues, ...]:
    """Codes far outside the rest, then other values set apart from the bulk."""
    bulk = in_bulk(data.y)
    return tuple(found for t in range(data.y.shape[1]) for found in _of_output(data, t, bulk[:, t]))


def warn_of_wild_values(found: tuple[WildValues, ...]) -> None:
    """One warning for each of the first few, and one for the rest."""
    for wild in found[:MOST_NAMED]:
        warnings.warn(wild.words, SumGPWarning, stacklevel=4)
    if len(found) > MOST_NAMED:
        warnings.warn(f"Y: {len(found) - MOST_NAMED} more values are as far outside", SumGPWarning, stacklevel=4)


def _of_output(data: Data, t: int, bulk: np.ndarray) -> Iterator[WildValues]:
    y, name = data.y[:, t], data.output_names[t]
    coded = np.any([np.abs(np.abs(y) - code) <= SAME_CODE * code for code in CODES], axis=0)
    rest = bulk & ~coded
    if rest.sum() < 2:
        return
    centre, ends = float(np.median(y[rest])), (float(y[rest].min()), float(y[rest].max()))
    reach = float(np.abs(y[rest] - centre).max())
    for value in np.unique(y[coded]):
        if abs(value - centre) > FAR * reach:
            yield WildValues(name, tuple(map(int, np.flatnonzero(y == value))), float(value), ends, True)
    for row in np.flatnonzero(~np.isnan(y) & ~bulk & ~coded):
        yield WildValues(name, (int(row),), float(y[row]), ends, False)
