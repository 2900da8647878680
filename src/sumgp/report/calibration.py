"""Whether intervals are calibrated, judged by measurements that were left out: counts, plain words, a figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri
from scipy.stats import binom

from sumgp.report.drawing import Band, Curve, Panel, Points
from sumgp.report.scores import LeftOut
from sumgp.report.style import Theme

LEVELS = (0.5, 0.8, 0.95)  # nominal coverages in the table
CURVE = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)  # nominal coverages in the figure
EXPECTED = 0.95  # probability of the range of counts that is called expected
CLEAR = 0.99  # the same for the range beyond which something is said
FEW = 40  # measurements below which a count says little


@dataclass(frozen=True)
class Count:
    """``inside`` of ``total`` left-out measurements lie within their central interval of a ``level``."""

    level: float
    inside: int
    total: int

    @property
    def share(self) -> float:
        """inside / total."""
        return self.inside / self.total

    def expected(self, probability: float = EXPECTED) -> tuple[int, int]:
        """Smallest and largest count expected of calibrated intervals: quantiles of a binomial(total, level)."""
        tail = 0.5 * (1.0 - probability)
        low, high = binom.ppf([tail, 1.0 - tail], self.total, self.level)
        return int(low), int(high)


def counts(left_out: LeftOut, levels: Sequence[float] = LEVELS, output: int | None = None) -> tuple[Count, ...]:
    """One count per level over all outputs, or of one; none where nothing could be left out.

    A measurement is inside the interval of level p if its residual is at most Phi^-1((1 + p) / 2) standard deviations.
    """
    z = left_out.standardised if output is None else left_out.standardised[:, output]
    sizes = np.abs(z[np.isfinite(z)])
    if not len(sizes):
        return ()
    return tuple(Count(level, int(np.sum(sizes <= ndtri(0.5 + 0.5 * level))), len(sizes)) for level in levels)


def sentence(count: Count) -> str:
    """The count in plain words."""
    return f"{count.inside} of {count.total} measurements lie within their {count.level:.0%} leave-out interval".replace(
        "%", " %"
    )


def remark(total: int) -> str:
    """What a count of ``total`` measurements can tell, for readers of a table."""
    low, high = Count(0.95, 0, total).expected()
    few = " These are few: the counts can show only large faults." if total < FEW else ""
    return (
        "Each measurement is predicted from all other rows, with the hyperparameters of the whole fit; calibrated intervals "
        f"would hold {low} to {high} of {total} at 95 %, in 19 of 20 cases.{few}"
    )


def left_out_panel(left_out: LeftOut, theme: Theme) -> Panel:
    """Observed against nominal coverage, the diagonal, and the band expected of calibrated intervals."""
    found = counts(left_out, CURVE)
    nominal = np.array([c.level for c in found])
    ranges = np.array([c.expected() for c in found]) / found[0].total
    first = theme.cycle[0]
    ends = np.array([0.0, 1.0])
    level = np.concatenate([[0.0], nominal, [1.0]])
    lower, upper = (np.concatenate([[0.0], ranges[:, side], [1.0]]) for side in (0, 1))
    marks = (
        Band(level, lower, upper, theme.faint, "expected range if calibrated"),
        Curve(ends, ends, theme.faint, "nominal", 1.0, "dash"),
        Curve(nominal, np.array([c.share for c in found]), first, "", 1.3),
        Points(nominal, np.array([c.share for c in found]), first, "left-out measurements", 6.0),
    )
    return Panel(marks, "observed coverage")
