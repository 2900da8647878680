"""Sections on evidence and gradient: dense against LAPACK and other libraries, Kronecker against dense."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.optimize import minimize

from sumgp.solvers import Automatic, DenseEvidence, KroneckerEvidence
from sumgp_studies.speed.problems import Size, multitask, outputs_over
from sumgp_studies.speed.rivals import ValueAndGradient, gpytorch_evidence, has_gpytorch, sklearn_evidence
from sumgp_studies.speed.timing import Bar, Section, cpu_seconds, lapack_cholesky, lapack_eigen, milliseconds, side_by_side

SIZES = (Size(20, 2), Size(20, 4), Size(50, 4), Size(100, 4), Size(200, 4), Size(500, 4), Size(1000, 4))
QUICK_SIZES = SIZES[:5]
CHOLESKY_BARS = {Size(200, 4): 8.0, Size(500, 4): 5.0}
KRONECKER_SIZES = (Size(100, 4), Size(250, 4), Size(500, 4), Size(1000, 4))
KRONECKER_BARS = {Size(1000, 4): 3.0}
FIT_SIZES = (Size(20, 2), Size(50, 4), Size(150, 4))

LIMIT, DENSE, CHOSEN, SKLEARN = "one Cholesky (LAPACK)", "sumgp, dense", "sumgp, as it chooses", "scikit-learn"
EIGEN = "one eigendecomposition (LAPACK)"
EXACT, GPYTORCH = "GPyTorch, exact", "GPyTorch, as it chooses"
NOTE = (
    "Milliseconds, all hyperparameters' derivatives included: RBF, full task covariance, a noise per output, complete data. "
    "Left to itself sumgp takes the Kronecker form from 3 outputs and 100 values on, which is exact; GPyTorch estimates log "
    "determinant and traces from random vectors above 800 values, which is not: so both are measured dense and exact too. "
    "scikit-learn has no multitask prior: it is given one output with as many values and only two hyperparameters. "
    "Everything in double precision."
)

Curves = dict[str, tuple[list[float], list[float]]]


def dense_section(sizes: tuple[Size, ...] = SIZES) -> Section:
    """Evidence + gradient of an unconstrained multitask GP, beside one Cholesky factor of the same matrix."""
    curves: Curves = {}
    rows, bars = [], []
    for size in sizes:
        times = _times(size)
        _extend(curves, size.entries, times)
        ratio = times[DENSE] / times[LIMIT]
        cells = [
            str(size),
            *(milliseconds(t) for t in times.values()),
            f"{ratio:.1f}",
            f"{times[SKLEARN] / times[DENSE]:.1f}",
        ]
        if size in CHOLESKY_BARS:
            bars.append(Bar(f"evidence + gradient / one Cholesky, {size}", CHOLESKY_BARS[size], ratio))
        if GPYTORCH in times:
            cells += [f"{times[EXACT] / times[DENSE]:.1f}", f"{times[GPYTORCH] / times[CHOSEN]:.1f}"]
            bars.append(Bar(f"dense sumgp / exact GPyTorch, {size}", 1.0, times[DENSE] / times[EXACT]))
            bars.append(Bar(f"sumgp / GPyTorch, each as it chooses, {size}", 1.0, times[CHOSEN] / times[GPYTORCH]))
        rows.append(tuple(cells))
    columns = ("points x outputs", *curves, "dense / Cholesky", "scikit-learn / dense")
    if GPYTORCH in curves:
        columns += ("exact GPyTorch / dense", "GPyTorch / sumgp's choice")
    return Section("Evidence and gradient, dense", NOTE, columns, tuple(rows), tuple(bars), curves, "measured values")


def _times(size: Size) -> dict[str, float]:
    """CPU seconds of one evidence with all derivatives, by program."""
    x, y = outputs_over(size)
    prior = multitask(size)
    theta, dense, chosen = prior.start(), DenseEvidence(prior, x, y), Automatic().evidence(prior, x, y)
    works: dict[str, Callable[[], object]] = {
        LIMIT: lapack_cholesky(size.entries),
        DENSE: lambda: dense(theta),
        CHOSEN: lambda: chosen(theta),
        SKLEARN: sklearn_evidence(x, y),
    }
    if has_gpytorch():
        exact, start = gpytorch_evidence(x, y, prior.mean_variance, exact=True)
        usual, usual_start = gpytorch_evidence(x, y, prior.mean_variance, exact=False)
        works |= {EXACT: lambda: exact(start), GPYTORCH: lambda: usual(usual_start)}
    if isinstance(chosen, DenseEvidence):
        works[CHOSEN] = lambda: None
    times = side_by_side(works)
    return times | {CHOSEN: times[DENSE]} if isinstance(chosen, DenseEvidence) else times


def _extend(curves: Curves, at: float, times: dict[str, float]) -> None:
    for name, seconds in times.items():
        xs, ys = curves.setdefault(name, ([], []))
        xs.append(at)
        ys.append(seconds)


def kronecker_section(sizes: tuple[Size, ...] = KRONECKER_SIZES) -> Section:
    """Two small eigendecompositions instead of one large factor, for complete data and with 5 % missing."""
    curves: Curves = {}
    rows, bars = [], []
    for size in sizes:
        x, y = outputs_over(size)
        gaps = np.where(np.random.default_rng(1).random(y.shape) < 0.05, np.nan, y)
        prior = multitask(size)
        theta = prior.start()
        works: dict[str, ValueAndGradient] = {
            "Kronecker": KroneckerEvidence(prior, x, y),
            "Kronecker, 5 % missing": KroneckerEvidence(prior, x, gaps),
            "dense, 5 % missing": DenseEvidence(prior, x, gaps),
            "dense": DenseEvidence(prior, x, y),
        }
        times = side_by_side({EIGEN: lapack_eigen(size.N), **{name: partial(work, theta) for name, work in works.items()}})
        _extend(curves, size.N, times)
        ratio = times["Kronecker"] / times[EIGEN]
        gains = [times[f"dense{kind}"] / times[f"Kronecker{kind}"] for kind in ("", ", 5 % missing")]
        rows.append((str(size), *(milliseconds(t) for t in times.values()), f"{ratio:.2f}", *(f"{g:.1f}" for g in gains)))
        if size in KRONECKER_BARS:
            bars.append(Bar(f"Kronecker / one eigendecomposition, {size}", KRONECKER_BARS[size], ratio))
    columns = ("points x outputs", *curves, "Kronecker / eigendecomposition", "dense / Kronecker", "the same, 5 % missing")
    note = "Milliseconds of evidence + gradient; the eigendecomposition is LAPACK's of one N x N matrix."
    return Section("Kronecker against dense", note, columns, tuple(rows), tuple(bars), curves)


def fit_section(sizes: tuple[Size, ...] = FIT_SIZES) -> Section:
    """Whole maximisation of the evidence by one optimiser (SciPy's L-BFGS-B), with our evidence and GPyTorch's."""
    rows, bars = [], []
    for size in sizes:
        x, y = outputs_over(size)
        prior = multitask(size)
        ours = Automatic().evidence(prior, x, y)
        best, seconds = _maximised(ours, prior.start(), prior.bounds())
        cells = [str(size), type(ours).__name__.removesuffix("Evidence"), milliseconds(seconds), f"{best:.2f}"]
        if has_gpytorch():
            theirs, start = gpytorch_evidence(x, y, prior.mean_variance)
            their_best, their_seconds = _maximised(theirs, start, None)
            cells += [milliseconds(their_seconds), f"{their_best:.2f}", f"{their_seconds / seconds:.1f}"]
            bars.append(Bar(f"whole fit: sumgp / GPyTorch, {size}", 1.0, seconds / their_seconds))
        rows.append(tuple(cells))
    columns: tuple[str, ...] = ("points x outputs", "solver", "sumgp [ms]", "log evidence")
    if has_gpytorch():
        columns += ("GPyTorch [ms]", "log evidence (GPyTorch)", "GPyTorch / sumgp")
    note = "The same model, optimiser and stopping rule for both; the log evidence reached says that it is the same optimum."
    return Section("Whole fit of an unconstrained multitask GP", note, columns, tuple(rows), tuple(bars))


def _maximised(
    evidence: ValueAndGradient, start: np.ndarray, bounds: list[tuple[float, float]] | None
) -> tuple[float, float]:
    """Largest log evidence and the CPU seconds of one search."""
    found = []

    def negative(theta: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = evidence(theta)
        return -value, -gradient

    def search() -> None:
        options = {"maxiter": 300, "ftol": 1e-9, "gtol": 1e-3}
        found.append(-minimize(negative, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).fun)

    seconds = cpu_seconds(search)
    return float(found[-1]), seconds
