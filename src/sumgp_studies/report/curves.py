"""The numbers behind a figure: fitted curves with bands on a fine grid, computed once and drawn in every theme."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sumgp.laws import SumLaw
from sumgp_studies.experiments import Cell, Dataset, Method, Problem, Settings

LEVEL = 0.95
N_GRID = 161
N_SAMPLES = 200


@dataclass(frozen=True)
class Band:
    """Mean and 95 % interval, each (n, columns)."""

    mean: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


@dataclass(frozen=True)
class Curves:
    """One data set with the fits of several methods at ``grid`` (n, 1), and its true outputs at the test inputs."""

    problem: Problem
    cell: Cell
    dataset: Dataset
    grid: np.ndarray
    fits: Mapping[str, Band]
    transformed: Band | None = None  # terms a_i(x) h_i(f_i) of the law
    virtual: tuple[np.ndarray, ...] = ()  # per term: inputs at which the branch changes


def fit_curves(
    problem: Problem, cell: Cell, methods: Sequence[Method], settings: Settings, transformed_by: str = ""
) -> Curves:
    """Fit every method to the data set of ``settings.random_state``; ``transformed_by`` names the one for the terms."""
    dataset = problem.dataset(cell, settings.random_state)
    grid = np.linspace(dataset.X_test[0, 0], dataset.X_test[-1, 0], N_GRID)[:, None]
    fits, terms = {}, None
    for method in methods:
        posterior = method.fit(dataset, settings).predict(grid)
        fits[method.name] = Band(np.asarray(posterior.mean), *posterior.interval(LEVEL))
        if method.name == transformed_by:
            samples = posterior.sample(N_SAMPLES, random_state=settings.random_state)
            terms = _terms(dataset, grid, np.asarray(samples), fits[method.name].mean)
    virtual = switches(dataset, grid, fits[methods[0].name].mean) if terms is not None else ()
    return Curves(problem, cell, dataset, grid, fits, terms, virtual)


def sum_law(dataset: Dataset) -> SumLaw:
    """The data set's law, which must be a sum of transformed outputs."""
    law = dataset.law()
    if not isinstance(law, SumLaw):
        raise ValueError(f"a sum of transformed outputs is expected, got {type(law).__name__}")
    return law


def term_values(dataset: Dataset, f: np.ndarray, x: np.ndarray) -> np.ndarray:
    """(n, terms) values a_i(x) h_i(f_i) of the law's first row; NaN outside the domain of h."""
    law = sum_law(dataset)
    with np.errstate(invalid="ignore", divide="ignore"):
        return law.F(x)[:, 0, :] * law.transformed(f)


def _terms(dataset: Dataset, grid: np.ndarray, samples: np.ndarray, mean: np.ndarray) -> Band:
    draws = np.stack([term_values(dataset, draw, grid) for draw in samples])
    lower, upper = np.nanquantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    return Band(term_values(dataset, mean, grid), lower, upper)


def switches(dataset: Dataset, grid: np.ndarray, f: np.ndarray) -> tuple[np.ndarray, ...]:
    """Per term of the law: inputs at which the curve f (n, T) crosses from one branch of h to the next.

    There the paper's method places virtual measurements.
    """
    found = []
    for column, transform in sum_law(dataset).columns:
        values = f[:, column]
        levels = transform.critical_points(float(values.min()), float(values.max()))
        found.append(np.sort(np.concatenate([[], *(_crossings(grid[:, 0], values - level) for level in levels)])))
    return tuple(found)


def _crossings(x: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Zeros of the straight lines through the values."""
    at = np.flatnonzero(values[:-1] * values[1:] < 0)
    return x[at] - values[at] * (x[at + 1] - x[at]) / (values[at + 1] - values[at])
