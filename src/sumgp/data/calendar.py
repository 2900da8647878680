"""Dates as inputs: numbers of a stated unit since the first date of the data, and back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sumgp.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

UNITS = {"seconds": 1.0, "minutes": 60.0, "hours": 3600.0, "days": 86400.0}  # in seconds
_FEWEST_UNITS = 3.0  # of the data's range: the longest unit of which it holds at least so many is taken
_PER_SECOND = 1_000_000_000  # nanoseconds
DATE_TEXT = re.compile(r"\s*\d{4}-\d{2}")  # how a date in the order year, month, day begins


@dataclass(frozen=True)
class Dates:
    """Dates of one input as numbers: ``unit`` (seconds, minutes, hours, days) since ``origin`` (ISO text).

    With a ``zone`` the origin is in UTC, and dates are shown in the zone.
    """

    unit: str
    origin: str
    zone: str | None = None

    def numbers(self, times: np.ndarray) -> np.ndarray:
        """(n,) units since the origin, from datetime64; differences are taken in whole nanoseconds."""
        elapsed = (times.astype("datetime64[ns]") - np.datetime64(self.origin, "ns")).astype(np.int64)
        return elapsed / (UNITS[self.unit] * _PER_SECOND)

    def times(self, numbers: np.ndarray) -> pd.DatetimeIndex:
        """The dates again, to the microsecond, in the zone of the data."""
        import pandas as pd

        microseconds = np.round(np.asarray(numbers, dtype=float) * UNITS[self.unit] * 1e6).astype(np.int64)
        found = pd.DatetimeIndex(np.datetime64(self.origin, "us") + microseconds.astype("timedelta64[us]"))
        return found if self.zone is None else found.tz_localize("UTC").tz_convert(self.zone)

    def __str__(self) -> str:
        zone = "" if self.zone is None else f" UTC (shown in {self.zone})"
        return f"{self.unit} since {self.origin.replace('T00:00:00', '').replace('T', ' ')}{zone}"


Calendar = Mapping[str, Dates]  # of the inputs that are dates, by name


def chosen_dates(times: np.ndarray, zone: str | None) -> Dates:
    """Unit and origin for the dates of training data (datetime64, in UTC if there is a zone)."""
    first, last = times.min(), times.max()
    seconds = (last - first).astype("timedelta64[ns]").astype(np.int64) / _PER_SECOND
    fitting = [name for name, size in UNITS.items() if seconds >= _FEWEST_UNITS * size]
    origin = np.datetime_as_string(first.astype("datetime64[ns]")).removesuffix(".000000000")
    return Dates(fitting[-1] if fitting else "seconds", origin, zone)


def as_numbers(times: np.ndarray, zone: str | None, dates: Dates, argument: str) -> np.ndarray:
    """Dates of new points in the unit of the training data; naive and zoned ones are not mixed."""
    if (zone is None) != (dates.zone is None):
        expected, got = ("times without a zone", f"times in {zone}") if zone else (f"times in {dates.zone}", "no time zone")
        remedy = "use tz_localize or tz_convert so that they are as in the data of the fit"
        raise DataError(argument, expected, got, remedy)
    return dates.numbers(times)


def text_as_dates(column: pd.Series) -> pd.Series | None:
    """The column as dates, empty cells as NaT; None where a cell is no date in the order year, month, day."""
    import pandas as pd

    words = column.dropna().astype(str)
    if not len(words) or not words.map(lambda word: DATE_TEXT.match(word) is not None).all():
        return None
    texts = column.astype("string").str.strip()
    zoned = bool(texts.str.contains(r"\d(?:Z|[+-]\d{2}:?\d{2})$", regex=True).any())
    try:
        return pd.Series(pd.to_datetime(texts, format="ISO8601", utc=zoned), index=column.index)
    except (ValueError, TypeError):
        return None
