"""The law against the data: totals that measured rows contradict, and errors that are alike in neighbouring rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from sumgp.errors import warn
from sumgp.laws import Law, typical_rows
from sumgp.strategies import FitProblem

FALSE_ALARM = 1e-5  # chance that a true law of rows with normal errors is said to be contradicted
FEWEST_ROWS = 4  # complete rows: with fewer a mean says nothing against a stated total
LAGS = 3  # rows apart, up to which errors are compared: correlated noise of 30 rows is found more often than with one
FEWEST_ALIKE = 20  # complete rows along one input: with fewer no correlation is sure
ALIKE = 3.5  # standard errors; 269 laws of honest families had at most 2.0 (mean -.4, sd .84)
ALIKE_SIZE = 0.5  # of what the noise explains: less is how values were rounded


@dataclass(frozen=True)
class Imbalance:
    """What complete rows as measured miss one row of the law by, in the order of the inputs."""

    label: str
    values: np.ndarray  # (n,)
    expected: np.ndarray  # (n,) standard deviation that the noise of the fit gives them
    bias: float  # mean that noise alone causes through the law's curvature
    round_off: float
    allowed: float  # error that the law itself states

    def contradicts(self) -> tuple[float, float] | None:
        """Mean and its standard error, if the mean is none that noise gives; None if it is."""
        error = max(float(self.values.std(ddof=1)) / np.sqrt(len(self.values)), self.round_off)
        offset = float(self.values.mean())
        most = float(student.isf(FALSE_ALARM / 2.0, len(self.values) - 1)) * error + 2.0 * abs(self.bias) + self.allowed
        return (offset, error) if abs(offset) > most else None

    def alike(self) -> tuple[float, float] | None:
        """Correlation of neighbouring rows and size relative to the noise of the fit; None if rows may be independent.

        Independent errors e of mean 0 have sum_k r_k sqrt(n / LAGS) ~ N(0, 1) with r_k = sum_i e_i e_(i+k) / sum_i e_i^2.
        """
        with np.errstate(all="ignore"):
            errors = self.values / self.expected
        if self.allowed > 0 or len(errors) < FEWEST_ALIKE or not np.all(np.isfinite(errors)):
            return None
        errors = errors - errors.mean()
        size = float(np.sqrt(np.mean(errors**2)))
        if size < ALIKE_SIZE:
            return None
        correlations = [float(errors[lag:] @ errors[:-lag]) / float(errors @ errors) for lag in range(1, LAGS + 1)]
        return (correlations[0], size) if sum(correlations) * np.sqrt(len(errors) / LAGS) > ALIKE else None


def doubts(problem: FitProblem, law: Law, noise: np.ndarray) -> str:
    """What a status must say where rows as measured contradict the law, or miss it by errors that are alike in neighbouring
    rows; empty elsewhere. Warns. ``noise`` (T,): variances found, in the user's units."""
    words = ""
    for imbalance in imbalances(problem, law, noise):
        label = repr(imbalance.label)
        if found := imbalance.contradicts():
            words = words or f"the data contradict the law {label}"
            warn(
                f"the data contradict the law {label}: measured rows miss it by {found[0]:.4g} on average, with a standard "
                f"error of {found[1]:.2g}; check the total or declare it unknown, or, if the law holds only roughly, write "
                f"{label} with '+- unknown' at its end: mean and size of its error are then estimated"
            )
        elif not words and problem.noise.known is None and (found := imbalance.alike()):
            words = f"neighbouring rows miss the law {label} by similar errors; intervals may be too narrow"
            sizes = ", ".join(f"{sd:.2g}" for sd in found[1] * np.sqrt(noise))
            warn(
                f"neighbouring rows miss the law {label} by similar errors (correlation {found[0]:.2f}); intervals may be "
                f"too narrow. If the noise is correlated from row to row, state its size, for which the law suggests "
                f"noise=[{sizes}]; if the law holds only roughly, write it with '+- unknown' at its end"
            )
    return f"converged, but {words}" if words else ""


def imbalances(problem: FitProblem, law: Law, noise: np.ndarray) -> Iterator[Imbalance]:
    """One for each row of the law that enough complete rows tell about."""
    complete = np.flatnonzero(problem.data.measured[:, law.involved()[: problem.n_outputs]].all(axis=1))
    if law.unknowns or law.derivatives or len(complete) < FEWEST_ROWS:
        return
    complete = complete[np.argsort(problem.data.x[complete, 0], kind="stable")]
    typical = problem.scaling.restore(typical_rows(problem.data, problem.scaling))
    filled = np.where(problem.data.measured, problem.data.y, typical)[complete]
    x = problem.data.x[complete]
    active = law.active(x)
    with np.errstate(all="ignore"):
        residual, magnitude = law.residual(filled, x), law.magnitude(filled, x)
        expected = np.sqrt(law.jacobian(filled, x)[:, :, : len(noise)] ** 2 @ noise)
    for row in range(law.n_rows):
        used = np.isfinite(residual[:, row]) & np.isfinite(magnitude[:, row]) & active[:, row]
        if used.sum() < FEWEST_ROWS:
            continue
        yield Imbalance(
            label=law.labels[row],
            values=residual[used, row],
            expected=expected[used, row] if problem.data.n_inputs == 1 else np.zeros(int(used.sum())),
            bias=_noise_bias(law, filled, x, row, noise),
            round_off=1e-12 * float(magnitude[used, row].max()),
            allowed=float(law.noise[row]),
        )


def _noise_bias(law: Law, f: np.ndarray, x: np.ndarray, row: int, noise: np.ndarray) -> float:
    """Mean residual that noise alone causes through the law's curvature (E[z^2] exceeds the true square)."""
    bias = 0.0
    for t, variance in enumerate(noise):
        step = np.sqrt(variance)
        up, down = f.copy(), f.copy()
        up[:, t] += step
        down[:, t] -= step
        with np.errstate(all="ignore"):
            second = law.residual(up, x)[:, row] + law.residual(down, x)[:, row] - 2.0 * law.residual(f, x)[:, row]
        usable = second[np.isfinite(second)]
        bias += 0.5 * float(usable.mean()) if len(usable) else 0.0
    return bias
