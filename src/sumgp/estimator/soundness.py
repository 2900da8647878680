"""After the fit: values that nothing explains, and a law that is not met or that the data contradict."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from sumgp.data import DIFFERENT, Data, group_medians, in_bulk
from sumgp.errors import counted, doubted, warn
from sumgp.estimator.wild_values import NAMED_ROWS, WildValues
from sumgp.laws import Law, SumLaw, typical_rows
from sumgp.numerics import neighbour_correlation
from sumgp.prediction import Posterior
from sumgp.strategies import CONTRADICTED, FitProblem, closed_imbalance

# Codes that instruments and file formats write for "missing": -999, 9999.0, 99.99e3 and the like, and fill values.
NINES = tuple(10.0**digits - 1.0 for digits in range(3, 10))
DECIMAL_NINES = (999.9, 999.99, 9999.9, 99999.9)  # the same with decimals
# Fill values of netCDF, GRIB and other formats, and the largest 16 and 32 bit integers.
FILL_VALUES = (1e20, 1e30, 1e34, 1e35, 1e36, 32767.0, 32768.0, 2147483647.0, 2147483648.0, 9.969209968386869e36)
CODES = (*NINES, *DECIMAL_NINES, *FILL_VALUES)
SAME_CODE = 1e-6  # relative; single precision has rounded some of them
MOST_NAMED = 5  # in warnings of one fit
FAR = 5.0  # times further from the median of the rest than any of the rest
HELD = 1e-6  # residual of the mean, relative to the law's terms, up to which a law holds
HELD_IN_BOUNDS = 1e-9  # the same where points were moved into bounds, which is done to round-off or not at all
MOST_ROWS = 300  # at which a fit is looked at
MOST_BETWEEN = 40  # points between rows at which it is: their means take a hundredth of the time of a small fit
ROBUST_SD = 1.4826  # of a normal distribution, times the median of absolute deviations
UNEXPLAINED = 10.0  # robust standard deviations of the residuals
UNEXPLAINED_BY_KNOWN = 8.0  # stated standard deviations of the noise
UNEXPLAINED_SIZE = 3.0  # standard deviations of the output
ROUND_OFF = float(np.finfo(float).eps)  # of unit-free values: no noise is smaller
MISFIT_SIZE = 0.1  # distance of the data from the mean, in standard deviations of the output: less is no failure
NOTICED_SIZE = 0.03  # the same: less does not matter
SMOOTH = 0.8  # correlation of neighbouring residuals: hardly any of them is noise (a bound that cuts one peak off: .7)
FEW_COPIES = 0.05  # share of the rows
ROUNDED = 0.05  # share of values that occur in other rows too, from which on a copy may be a measurement of its own
FALSE_ALARM = 1e-5  # chance that a true law of rows with normal errors is said to be contradicted
FEWEST_ROWS = 4  # complete rows: with fewer a mean says nothing against a stated total
# Standard errors of the correlation of neighbouring errors that are no chance: one in 10,000 for 8 rows and for 100.
ALIKE = 4.5
ALIKE_SIZE = 0.5  # of what the noise explains: less is how values were rounded


def find_wild_values(data: Data) -> tuple[WildValues, ...]:
    """Codes far outside the rest, then other values set apart from the bulk."""
    bulk = in_bulk(data.y, data.x[:, : data.n_inputs])
    return tuple(found for t in range(data.y.shape[1]) for found in _of_output(data, t, bulk[:, t]))


def warn_of_wild_values(found: tuple[WildValues, ...]) -> None:
    """One warning for each of the first few, and one for the rest."""
    for wild in found[:MOST_NAMED]:
        warn(wild.words)
    if len(found) > MOST_NAMED:
        warn(f"Y: {counted(len(found) - MOST_NAMED, 'more such finding')}")


def _of_output(data: Data, t: int, bulk: np.ndarray) -> Iterator[WildValues]:
    y, name = data.y[:, t], data.output_names[t]
    coded = np.any([np.abs(np.abs(y) - code) <= SAME_CODE * code for code in CODES], axis=0)
    rest = bulk & ~coded
    if rest.sum() < 2:
        return
    centre, ends = float(np.median(y[rest])), (float(y[rest].min()), float(y[rest].max()))
    for value in np.unique(y[coded]):
        if abs(value - centre) > FAR * float(np.abs(y[rest] - centre).max()):
            yield WildValues(name, tuple(map(int, np.flatnonzero(y == value))), float(value), ends, True)
    wild = np.flatnonzero(~np.isnan(y) & ~bulk & ~coded)
    if len(wild):
        yield WildValues(name, tuple(map(int, wild)), float(y[wild[0]]), ends, False)


def check_closed(problem: FitProblem) -> bool:
    """True if the rows meet the law up to rounding; rows that do not, where all others do, are named in a warning."""
    found = closed_imbalance(problem)
    if found is not None and found.misprints:
        named = ", ".join(str(row) for row in found.misprints[:NAMED_ROWS])
        more = ", ..." if len(found.misprints) > NAMED_ROWS else ""
        warn(
            f"a law that all other complete rows meet up to rounding is violated by {counted(len(found.misprints), 'row')} "
            f"({named}{more}, counted from 0); look for a typing error there, or write NaN in place of the wrong value"
        )
    return found is not None and found.all_closed


def rows_to_check(problem: FitProblem) -> np.ndarray:
    """(n,) rows of the data at which a fit is looked at: all, or evenly chosen ones of many."""
    count = len(problem.data.x)
    return np.unique(np.linspace(0, count - 1, min(count, MOST_ROWS)).round().astype(int))


def checked_status(problem: FitProblem, posterior: Posterior, rows: np.ndarray, law: Law | None) -> str:
    """What a status must say besides "converged", empty where nothing is wrong; warns of it and of unexplained values.
    ``posterior`` is that at these rows of the data."""
    warn_of_wild_values(wild := find_wild_values(problem.data))
    if not wild:
        warn_of_unexplained_values(problem, posterior, rows)
    failure = "" if law is None else law_failure(posterior, law)
    if not failure and (law is not None or posterior.bounding is not None):
        failure = data_misfit(problem, posterior, rows)
    if failure:
        given = "law and its constants" if posterior.bounding is None else "law, its constants and the bounds"
        warn(f"{failure}; check the {given} against the data")
        return failure
    words = f"{wild[0].output!r} has {wild[0].value:g} in row {wild[0].rows[0]}" if wild else ""
    copies, count = copied_rows(problem.data) if problem.noise.known is None else 0, len(problem.data.x)
    if not wild and copies > FEW_COPIES * count:
        words = f"{copies} of {count} rows are copies of others, which makes the noise look smaller than it is"
        warn(f"{words}; remove rows that were not measured separately")
    if not words and problem.noise.known is None and problem.noise.row_factor is None:
        words = changing_noise(problem, posterior, rows)
    return f"converged, but {words}" if words else ""


def changing_noise(problem: FitProblem, posterior: Posterior, rows: np.ndarray) -> str:
    """Which output's noise changes along an input or with its own size, in words; empty where none does. Warns."""
    for t, name in enumerate(problem.data.output_names):
        seen = ~np.isnan(problem.data.y[rows, t])
        y, mean = problem.data.y[rows[seen], t], posterior.mean[seen, t]
        along = {f"along {d!r}": problem.data.x[rows[seen], i] for i, d in enumerate(problem.data.input_names)}
        for what, values in {**along, "with its size": np.abs(mean)}.items():
            medians = group_medians(np.abs(y - mean), y, np.array_split(np.argsort(values, kind="stable"), 3))
            if (ratio := float(medians.max() / medians.min())) > DIFFERENT:
                words = f"the noise of {name!r} changes {ratio:.0f}-fold {what}, but one value is used for all rows"
                warn(f"{words}: bands are too narrow where it is large; give noise= an array with the shape of Y")
                return words
    return ""


def copied_rows(data: Data) -> int:
    """Number of rows whose inputs and measured values are all those of an earlier row; 0 where values are rounded."""
    filled = np.nan_to_num(np.column_stack([data.x, data.y]), nan=np.inf)[data.measured.any(axis=1)]
    rows = np.unique(filled, axis=0)
    values = [v[np.isfinite(v)] for v in rows[:, data.x.shape[1] :].T]
    ties = sum(len(v) - len(np.unique(v)) for v in values)
    return len(filled) - len(rows) if ties <= ROUNDED * sum(map(len, values)) else 0


def law_failure(posterior: Posterior, law: Law) -> str:
    """How the mean misses the law, in words; empty where it holds at all points. A residual is compared with the law's
    largest term plus what a change of each output by its own scale does."""
    residual, f, x = posterior.residual(), posterior.mean, posterior.x
    held = HELD if posterior.bounding is None or law.derivatives else HELD_IN_BOUNDS
    if residual.shape[1] != law.n_rows:
        return ""
    if law.n_columns > f.shape[1]:
        f = np.concatenate([f, posterior.law_columns()], axis=1)
    with np.errstate(all="ignore"):
        slopes = np.abs(law.jacobian(f, x))[:, :, : posterior.mean.shape[1]] @ posterior.scaling.y_scale
        size = np.nan_to_num(law.magnitude(f, x)) + np.nan_to_num(slopes)
        missed = np.abs(residual) > held * size
    hard = law.active(x) & (law.noise == 0)
    bad = (np.isnan(residual) | missed) & hard
    if not bad.any():
        return ""
    first, row = np.argwhere(bad)[0]
    what = "is not defined" if np.isnan(residual[first, row]) else f"is violated by {residual[first, row]:.2g}"
    count = int(bad.any(axis=1).sum())
    where = [float(f"{value:.6g}") for value in x[first]]
    return f"law {law.labels[row]!r} {what} at x = {where} ({count} of {len(x)} points)"


def law_failure_between(problem: FitProblem, law: Law, predict: Callable[[np.ndarray], Posterior]) -> str:
    """How the mean misses the law half way between rows, in words; empty where it holds. Warns.

    A law with columns of its own is known at rows only, one with derivatives has points of its own (``fit_report_``).
    """
    if law.extra_columns or law.derivatives or (isinstance(law, SumLaw) and law.is_linear):
        return ""
    rows = np.unique(problem.data.x, axis=0)
    between = 0.5 * (rows[1:] + rows[:-1])
    chosen = np.unique(np.linspace(0, len(between) - 1, min(len(between), MOST_BETWEEN)).round().astype(int))
    failure = law_failure(predict(between[chosen]), law) if len(chosen) else ""
    if failure:
        warn(f"{failure}; check the law and its constants against the data")
    return failure


def data_misfit(problem: FitProblem, posterior: Posterior, rows: np.ndarray) -> str:
    """How the mean misses the data of an output by far more than its noise, or smoothly, in words; empty where it does not.
    No fit to the data alone does that: a law or a bound that they contradict pulls it away."""
    variance = noise_variances(problem, posterior, rows)
    for t, gap, correlation, error in _residuals(problem, posterior, rows):
        seen = ~np.isnan(problem.data.y[rows, t])
        noise = np.maximum(variance[seen, t], ROUND_OFF**2)  # none where a law fixes an output
        distance, size = np.sqrt(np.mean(gap**2 / noise)), np.sqrt(np.mean(gap**2))
        if size > MISFIT_SIZE and (distance > CONTRADICTED or correlation > max(SMOOTH, ALIKE * error)):
            who = {"the law": posterior.law, "a bound": posterior.bounding}
            pulling = " or ".join(word for word in who if who[word] is not None)
            pulling = f"{pulling} pulls {problem.data.output_names[t]!r} away from its data"
            if distance > CONTRADICTED:
                return f"{pulling} by {distance:.3g} standard deviations of the noise"
            return f"{pulling}: the residuals, {size:.2g} of the output's sd, vary smoothly, as noise does not"
    return ""


def alike_residuals(problem: FitProblem, posterior: Posterior, rows: np.ndarray) -> str:
    """What a status must say where residuals of neighbouring rows are alike, less than in ``data_misfit``. Warns."""
    found = [(c / e, t) for t, gap, c, e in _residuals(problem, posterior, rows) if np.mean(gap**2) > NOTICED_SIZE**2]
    if problem.noise.known is not None or not found:
        return ""
    most, t = max(found)
    if max(most, sum(z for z, _ in found) / np.sqrt(len(found))) < ALIKE:
        return ""
    words = f"residuals of {problem.data.output_names[t]!r} are alike in neighbouring rows; intervals may be too narrow"
    return doubted(words, ": either the law holds only roughly, or the noise is correlated from row to row")


def _residuals(
    problem: FitProblem, posterior: Posterior, rows: np.ndarray
) -> Iterator[tuple[int, np.ndarray, float, float]]:
    """Each output that is measured, its unit-free residuals, and the correlation of neighbouring ones with its error."""
    for t in range(problem.n_outputs):
        seen = ~np.isnan(problem.data.y[rows, t])
        if seen.any():
            gap = (problem.data.y[rows[seen], t] - posterior.mean[seen, t]) / problem.scaling.y_scale[t]
            yield t, gap, *neighbour_correlation(gap, problem.x[rows[seen]])


def noise_variances(problem: FitProblem, posterior: Posterior, rows: np.ndarray) -> np.ndarray:
    """(n, T) of the fit, or as known, unit-free; rows of little weight have more."""
    if problem.noise.known is not None:
        return problem.noise.known[rows]
    each = [np.diagonal(component.noise_covariance) for component in posterior.fitted.components]
    factor = np.ones(len(problem.y)) if problem.noise.row_factor is None else problem.noise.row_factor
    return factor[rows, None] * (posterior.fitted.weights @ each)


def warn_of_unexplained_values(problem: FitProblem, posterior: Posterior, rows: np.ndarray) -> None:
    """Name the measured value of each output that the fit's noise explains least, where it cannot: further from the mean
    than others by far, and by more than the stated noise or the output's own size allow."""
    y, scale = problem.data.y[rows], problem.scaling.y_scale
    known = problem.noise.known
    variance = np.ones((1, 1)) if known is not None else noise_variances(problem, posterior, rows) + ROUND_OFF**2
    gap = np.abs(y - posterior.mean) * np.sqrt(np.median(variance, axis=0) / variance)
    for t, name in enumerate(problem.data.output_names):
        seen = ~np.isnan(gap[:, t])
        if seen.sum() < 4:
            continue
        allowed = UNEXPLAINED_SIZE * scale[t] * np.ones(len(rows))
        if known is not None:
            allowed = UNEXPLAINED_BY_KNOWN * np.sqrt(known[rows, t]) * scale[t] + 1e-9 * np.abs(y[:, t])
        allowed = np.maximum(allowed, UNEXPLAINED * ROBUST_SD * np.median(gap[seen, t]))
        excess = np.where(seen, gap[:, t] / np.where(seen, allowed, 1.0), 0.0)
        if excess.max() > 1.0:
            worst = int(np.argmax(excess))
            warn(
                f"Y: row {rows[worst]}, output {name!r} is {y[worst, t]:.6g} where the fit says "
                f"{posterior.mean[worst, t]:.4g}; no noise of the size seen in the other rows explains that: correct the "
                "value, write NaN if it was not measured, or give it a larger noise= of its own"
            )


@dataclass(frozen=True)
class Imbalance:
    """What complete rows as measured miss one row of the law by."""

    label: str
    x: np.ndarray  # (n, D)
    values: np.ndarray  # (n,)
    expected: np.ndarray  # (n,) standard deviation that the noise of the fit gives them
    bias: np.ndarray  # (n,) mean that noise alone causes through the law's curvature
    round_off: float
    allowed: float  # error that the law itself states

    def contradicts(self) -> tuple[float, float] | None:
        """Mean and its standard error, if the mean is none that noise gives; None if it is."""
        error = max(float(self.values.std(ddof=1)) / np.sqrt(len(self.values)), self.round_off)
        offset = float(self.values.mean())
        quantile = float(student.isf(FALSE_ALARM / 2.0, len(self.values) - 1))
        most = quantile * error + 2.0 * abs(float(self.bias.mean())) + self.allowed
        return (offset, error) if abs(offset) > most else None

    def alike(self) -> tuple[float, float] | None:
        """Correlation of neighbouring rows and size relative to the noise of the fit; None if rows may be independent."""
        certain = np.sign(self.values) * np.maximum(np.abs(self.values) - 2.0 * np.abs(self.bias), 0.0)
        with np.errstate(all="ignore"):
            errors = certain / self.expected
        if self.allowed > 0 or not np.all(np.isfinite(errors)):
            return None
        size = float(np.sqrt(np.mean(errors**2)))
        correlation, error = neighbour_correlation(errors, self.x)
        return (correlation, size) if size > ALIKE_SIZE and correlation > ALIKE * error else None


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
    typical = problem.scaling.restore(typical_rows(problem.data, problem.scaling))
    filled = np.where(problem.data.measured, problem.data.y, typical)[complete]
    x = problem.data.x[complete]
    with np.errstate(all="ignore"):
        residual, magnitude = law.residual(filled, x), law.magnitude(filled, x)
        expected = np.sqrt(law.jacobian(filled, x)[:, :, : len(noise)] ** 2 @ noise)
    for row in range(law.n_rows):
        used = np.isfinite(residual[:, row]) & np.isfinite(magnitude[:, row]) & law.active(x)[:, row]
        if used.sum() < FEWEST_ROWS:
            continue
        yield Imbalance(
            label=law.labels[row],
            x=problem.x[complete[used], : problem.data.n_inputs],
            values=residual[used, row],
            expected=expected[used, row],
            bias=_noise_bias(law, filled, x, row, noise)[used],
            round_off=1e-12 * float(magnitude[used, row].max()),
            allowed=float(law.noise[row]),
        )


def _noise_bias(law: Law, f: np.ndarray, x: np.ndarray, row: int, noise: np.ndarray) -> np.ndarray:
    """(n,) mean residuals that noise alone causes through the law's curvature (E[z^2] exceeds the true square)."""
    bias = np.zeros(len(f))
    for step in np.diag(np.sqrt(noise)):
        with np.errstate(all="ignore"):
            sides = law.residual(f + step, x) + law.residual(f - step, x)
            second = (sides - 2.0 * law.residual(f, x))[:, row]
        bias += 0.5 * np.where(np.isfinite(second), second, 0.0)
    return bias
