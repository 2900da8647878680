"""The paper's own results, as data: mean and standard deviation over its data sets for each cell."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources

from sumgp_studies.experiments.problem import Cell

LABELS = {
    "gp_c": "GP-c", "gp_u": "GP-u", "gp_tr": "GP-tr", "gp_c_laplace": "GP-c Laplace", "gp_c_variational": "GP-c variational"
}  # fmt: skip
# The published scores of these two are roots of sums over outputs; the triangle's violation is in lengths.
_NORM_SCORES = ("triangle", "double_pendulum")


@dataclass(frozen=True)
class PublishedScore:
    """Mean and standard deviation over data sets of one score of one of the paper's methods."""

    experiment: str
    cell: Cell
    method: str  # key of LABELS
    score: str  # "rmse" or "violation"
    mean: float
    std: float


@cache
def published_scores(experiment: str) -> tuple[PublishedScore, ...]:
    """Every published score of an experiment, in the order of its table."""
    scores = []
    for entry in _tables().get(experiment, {}).get("cell", ()):
        cell = Cell(entry.get("noise"), entry.get("missing"))
        for method in LABELS:
            for score, (mean, std) in entry.get(method, {}).items():
                scores.append(PublishedScore(experiment, cell, method, score, float(mean), float(std)))
    return tuple(scores)


def published_source(experiment: str) -> str:
    """Which table of the paper it is."""
    return str(_tables().get(experiment, {}).get("source", ""))


def counterpart(experiment: str, method: str) -> str | None:
    """The paper's method that one of ours is compared with, or None if it is compared with nothing there."""
    if method == "unconstrained":
        return "gp_u"
    if method == "gram-unconstrained":
        return "gp_tr"
    if method in ("projected", "linear-interpolation", "cubic-spline"):
        return None
    if experiment == "approximations":
        return "gp_c_variational" if method == "transformed-variational" else "gp_c_laplace"
    return "gp_c"


def record_field(experiment: str, score: str) -> str:
    """The field of a record that holds what the paper calls ``score`` in this experiment."""
    if score == "rmse" and experiment in _NORM_SCORES:
        return "rmse_norm"
    if score == "violation" and experiment == "triangle":
        return "violation_length"
    return score


@cache
def _tables() -> dict:
    return tomllib.loads(resources.files("sumgp_studies.experiments").joinpath("published.toml").read_text(encoding="utf-8"))
