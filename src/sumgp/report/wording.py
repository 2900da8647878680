"""Diagnostics of a fit in plain words: what was found, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sumgp.errors import Status
from sumgp.laws import Law
from sumgp.report.fit_study import FitStudy
from sumgp.report.scores import CLEAR, FEW, counts, lengthscales, noise_sds, sentence

CLEARLY = 0.05  # relative difference of scores below which nothing is said
NARROW, NARROW_ROWS = 0.8, 15  # share of left-out measurements inside 95 % intervals, and the rows it takes to judge it
WIDE = 0.5  # of an output's own spread
ROUGH, FLAT = 1.0, 5.0  # lengthscale against the spacing of rows, and against their range


@dataclass(frozen=True)
class Advice:
    """One finding: ``good`` ones need no action."""

    good: bool
    finding: str
    remedy: str = ""


@dataclass(frozen=True)
class Verdict:
    """The conclusion in one or two sentences; ``kind`` is better, same, worse, look or plain."""

    kind: str
    text: str


def verdict(found: FitStudy) -> Verdict:
    """Does the law help? By rows left out, where they can be; else whether anything should be looked at."""
    asking = sum(not entry.good for entry in advice(found))
    rest = "" if not asking else f" {asking} finding{'s' if asking > 1 else ''} below should be looked at."
    if found.violation is None:
        return Verdict("look" if asking else "plain", f"Fitted without a law.{rest}")
    ratio = _ratio(found)
    if ratio > 1.0 + CLEARLY:
        text = f"The law makes the predictions worse: the error on left-out rows is {percent(ratio - 1.0)} larger"
        return Verdict("worse", f"{text} than without it.{rest}")
    if ratio < 1.0 - CLEARLY:
        text = f"The law helps: the error on left-out rows is {percent(1.0 - ratio)} smaller than without it."
        return Verdict("look" if asking else "better", text + rest)
    text = "The predictions obey the law"
    text += ", and are about as accurate as without it." if np.isfinite(ratio) else "; there is no score without the law."
    return Verdict("look" if asking else "same", text + rest)


def advice(found: FitStudy) -> list[Advice]:
    """All findings, those that ask for something first."""
    parts = (_warned, _status, _law, _bounds, _prior, _calibration, _intervals, _beyond)
    return sorted((entry for part in parts for entry in part(found)), key=lambda entry: entry.good)


def percent(share: float) -> str:
    """``12 %`` for 0.12."""
    return f"{100 * share:.0f} %"


def _warned(found: FitStudy) -> Iterator[Advice]:
    for text in found.warnings:
        yield Advice(False, text[0].upper() + text[1:] + ".")


def _bounds(found: FitStudy) -> Iterator[Advice]:
    outside = found.model.fit_report_.details.get("measured_outside_bounds", {})
    if outside:
        counts = ", ".join(f"{count} of {name!r}" for name, count in outside.items())
        yield Advice(True, f"Measured values outside the bounds count as noise: {counts}. The predictions obey the bounds.")


def _status(found: FitStudy) -> Iterator[Advice]:
    report = found.model.fit_report_
    if report.status != Status.CONVERGED:
        yield Advice(
            False,
            f"The fit ended with the status: {report.status}.",
            "Check the units of the data, or give a kernel and noise.",
        )
    if found.plain_trouble:
        yield Advice(True, f"There is no comparison without the law: {found.plain_trouble}.")


def _law(found: FitStudy) -> Iterator[Advice]:
    if found.violation is None:
        return
    yield Advice(True, _kept(found.violation.own, found.model.law_))  # type: ignore[arg-type]
    ratio = _ratio(found)
    if ratio > 1.0 + CLEARLY:
        yield Advice(
            False,
            f"Rows that were left out are predicted {percent(ratio - 1.0)} worse with the law than without it.",
            "Check the law, its constants and their units; let it hold only up to an error (+- unknown at its end); or use "
            "the strategy Projected, which only moves each prediction onto the law.",
        )
    elif ratio < 1.0 - CLEARLY:
        yield Advice(
            True, f"Rows that were left out are predicted {percent(1.0 - ratio)} better with the law than without it."
        )
    elif np.isfinite(ratio):
        yield Advice(True, "Rows that were left out are predicted about as well with the law as without it.")


def _kept(missed: np.ndarray, law: Law) -> str:
    """How well the predictions obey the law: ``missed`` (R,) is the mean residual of each row."""
    soft, missed = law.noise > 0, np.nan_to_num(missed)
    if not soft.any():
        worst = int(np.argmax(missed))
        return f"The predictions obey the law: on average they miss {law.labels[worst]!r} by {missed[worst]:.1e}."
    worst = int(np.argmax(np.where(soft, missed / np.where(soft, law.noise, 1.0), -1.0)))
    return (
        f"{law.labels[worst]!r} holds up to an error with a standard deviation of {law.noise[worst]:.3g}; on average the "
        f"predictions miss it by {missed[worst]:.2g}."
    )


def _ratio(found: FitStudy) -> float:
    """Error on left-out rows over that without the law, as a geometric mean over outputs, so that units do not matter.

    NaN where nothing can be compared.
    """
    if found.plain_left_out is None:
        return float("nan")
    own, other = found.left_out.rmse, found.plain_left_out.rmse
    both = np.isfinite(own) & np.isfinite(other) & (own > 0) & (other > 0)
    return float(np.exp(np.mean(np.log(own[both] / other[both])))) if both.any() else float("nan")


def _prior(found: FitStudy) -> Iterator[Advice]:
    data = found.model.data_
    sizes = lengthscales(found.model)
    names = [*data.input_names, *data.extra_columns][: len(sizes)]
    for i, (name, size) in enumerate(zip(names, sizes, strict=True)):
        values = np.unique(data.x[:, i])
        if len(values) < 4 or not np.isfinite(size):
            continue
        if size < ROUGH * float(np.median(np.diff(values))):
            yield Advice(
                False,
                f"The lengthscale along {name} ({size:.3g}) is shorter than the distance between rows: between them the "
                "fit knows little.",
                "Measure more densely, or give a kernel with a longer lengthscale if you know that the outputs vary slowly "
                f"with {name}.",
            )
        elif size > FLAT * float(np.ptp(values)):
            yield Advice(True, f"Along {name} the outputs are almost straight lines: the lengthscale is {size:.3g}.")
    inside = found.left_out.inside
    low = [n for n, share in zip(found.outputs, inside, strict=True) if np.isfinite(share) and share < NARROW]
    if low and len(data.x) >= NARROW_ROWS:
        yield Advice(
            False,
            f"Too few left-out measurements of {', '.join(low)} lie inside their 95 % intervals "
            f"({percent(np.nanmin(inside))}): the prior does not fit these data.",
            "Look for outliers; try another kernel (--kernel matern52 for rougher curves); check that the law's constants "
            "are right.",
        )


def _calibration(found: FitStudy) -> Iterator[Advice]:
    """Counts of left-out measurements against those expected of calibrated intervals."""
    found_counts = counts(found.left_out)
    if not found_counts:
        return
    widest = found_counts[-1]
    few = f" With {widest.total} measurements that shows only large faults." if widest.total < FEW else ""
    low = [c for c in found_counts if c.inside < c.expected(CLEAR)[0]]
    if low:
        yield Advice(
            False,
            f"{sentence(low[-1])}, fewer than the {low[-1].expected(CLEAR)[0]} expected if calibrated: these "
            "intervals are too narrow.",
            "Average over hyperparameters (leave out --plug-in), look for outliers, or try another kernel.",
        )
    elif found_counts[0].inside > found_counts[0].expected(CLEAR)[1]:
        yield Advice(True, f"{sentence(found_counts[0])}: the intervals are wider than necessary.{few}")
    else:
        yield Advice(True, f"{sentence(widest)}, as expected if calibrated.{few}")


def _intervals(found: FitStudy) -> Iterator[Advice]:
    std = np.median(found.posterior.std, axis=0)
    spread = found.model.scaling_.y_scale
    noise = noise_sds(found.model)
    for name, sd, own, error in zip(found.outputs, std, spread, noise, strict=True):
        if sd > WIDE * own:
            reason = "the noise is large" if error > WIDE * own else "there are too few measurements for how fast it varies"
            yield Advice(
                False,
                f"The intervals of {name} are wide: a standard deviation of {sd:.3g} where the data spread by {own:.3g}; "
                f"{reason}.",
                "Measure more rows, state the noise if you know it (--noise), or add a law that ties this output to "
                "better known ones.",
            )


def _beyond(found: FitStudy) -> Iterator[Advice]:
    data, D = found.model.data_, found.model.data_.n_inputs
    x = found.posterior.x[:, :D]
    outside = np.any((x < data.x[:, :D].min(axis=0)) | (x > data.x[:, :D].max(axis=0)), axis=1)
    if outside.any():
        yield Advice(
            True,
            f"{percent(outside.mean())} of the prediction points lie beyond the data: there the predictions return to the "
            "mean within a lengthscale or two, and the law still holds.",
        )
