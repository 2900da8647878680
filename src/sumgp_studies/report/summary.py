"""From records to means: scores of each method in each cell, beside the published ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from sumgp_studies.experiments import LABELS, Cell, Record, all_problems, counterpart, order, published_scores, record_field

SCORES = (
    "rmse", "rmse_norm", "violation", "violation_own", "violation_length", "coverage", "width", "nlpd", "crps", "cpu_seconds"
)  # fmt: skip

ENOUGH_SETS = 20  # of a cell: with these the standard error of a ratio is below a tenth


@dataclass(frozen=True)
class Spread:
    """Mean and standard deviation over n data sets."""

    mean: float
    std: float
    n: int


@dataclass(frozen=True)
class CellScores:
    """Scores of one method in one cell; ``failures`` counts data sets without a result."""

    experiment: str
    cell: Cell
    method: str
    scores: dict[str, Spread]
    failures: int


@dataclass(frozen=True)
class Comparison:
    """RMSE of one method against its counterpart in the paper, over the cells that both have."""

    method: str
    published: str
    ratios: tuple[tuple[str, Cell, float], ...]

    @property
    def better(self) -> int:
        """Number of cells with a lower mean error than the published one."""
        return sum(ratio < 1.0 for _, _, ratio in self.ratios)

    @property
    def geometric_mean(self) -> float:
        """Geometric mean of own over published error; below 1 is better."""
        return float(np.exp(np.mean([np.log(ratio) for _, _, ratio in self.ratios])))

    def sentence(self) -> str:
        """The summary line of a report."""
        return (
            f"{self.method}: RMSE below the paper's {LABELS[self.published]} in {self.better} of {len(self.ratios)} cells, "
            f"geometric mean ratio {self.geometric_mean:.2f}"
        )


def comparable(records: Iterable[Record]) -> list[Record]:
    """Records without the simulated pendulum's where recorded ones exist, so that the two are never averaged together."""
    records = list(records)
    has_real = {record.experiment for record in records if record.data == "real"}
    return [record for record in records if record.data == "real" or record.experiment not in has_real]


def shown_name(record: Record) -> str:
    """The method's name, with its setting where it is not the default."""
    return record.method if record.uncertainty == "integrated" else f"{record.method} ({record.uncertainty})"


def cell_scores(records: Sequence[Record]) -> list[CellScores]:
    """Means over data sets, one entry for each experiment, cell and method, in the order of appearance."""
    groups: dict[tuple[str, Cell, str], list[Record]] = defaultdict(list)
    for record in comparable(records):
        groups[record.experiment, Cell(record.noise, record.missing), shown_name(record)].append(record)
    return [
        CellScores(experiment, cell, method, _spreads(group), sum(record.failed for record in group))
        for (experiment, cell, method), group in groups.items()
    ]


def _spreads(records: Sequence[Record]) -> dict[str, Spread]:
    spreads = {}
    for score in SCORES:
        values = [value for record in records if (value := getattr(record, score)) is not None]
        if values:
            spreads[score] = Spread(float(np.mean(values)), float(np.std(values)), len(values))
    return spreads


def comparisons(scores: Sequence[CellScores], not_comparable: frozenset[str] = frozenset()) -> list[Comparison]:
    """Each method against the paper, leaving out experiments whose data are not of the paper's kind."""
    ratios: dict[tuple[str, str], list[tuple[str, Cell, float]]] = defaultdict(list)
    for entry in scores:
        bare = entry.method.split(" (")[0]
        published = counterpart(entry.experiment, bare)
        own = entry.scores.get(record_field(entry.experiment, "rmse"))
        if own is None or published is None or entry.experiment in not_comparable:
            continue
        for score in published_scores(entry.experiment):
            if (score.cell, score.method, score.score) == (entry.cell, published, "rmse"):
                # The engines' table calls the constrained GP by its engine; it is the same method.
                family = "gp_c" if published == "gp_c_laplace" else published
                ratios[entry.method, family].append((entry.experiment, entry.cell, own.mean / score.mean))
    found = sorted(ratios, key=lambda pair: order(pair[0]))
    return [
        Comparison(method, published, tuple(sorted(ratios[method, published], key=_place))) for method, published in found
    ]


def caveats(scores: Sequence[CellScores]) -> list[str]:
    """What to keep in mind beside ratios that rest on few data sets: the standard error of one of them."""
    spreads = [entry.scores["rmse"] for entry in scores if "rmse" in entry.scores]
    fewest = min((spread.n for spread in spreads), default=ENOUGH_SETS)
    if fewest >= ENOUGH_SETS:
        return []
    several = [spread for spread in spreads if spread.n > 1 and spread.mean > 0]
    squares = [(spread.std / spread.mean) ** 2 / (spread.n - 1) for spread in several]
    error = f" (standard error of one ratio: about {100 * np.sqrt(np.mean(squares)):.0f} %)" if squares else ""
    sets = "one data set" if fewest == 1 else f"{fewest} data sets"
    return [f"The ratios rest on {sets} a cell and change with them{error}; --datasets 50 gives those of the documentation."]


def _place(ratio: tuple[str, Cell, float]) -> tuple[int, float, float]:
    """Sorting key in the order of the paper's tables, whatever order the records came in."""
    experiment, cell, _ = ratio
    names = list(all_problems())
    return (names.index(experiment) if experiment in names else len(names), cell.missing or 0.0, cell.noise or 0.0)


def coverage_curves(records: Sequence[Record]) -> dict[str, dict[float, float]]:
    """Method -> nominal coverage -> mean observed coverage over all data sets."""
    gathered: dict[str, dict[float, list[float]]] = defaultdict(lambda: defaultdict(list))
    for record in comparable(records):
        for level, share in record.coverages.items():
            if share is not None:
                gathered[shown_name(record)][float(level)].append(share)
    return {
        name: {level: float(np.mean(shares)) for level, shares in sorted(gathered[name].items())}
        for name in sorted(gathered, key=order)
    }
