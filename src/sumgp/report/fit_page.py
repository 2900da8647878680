"""The page of one fit: figures, the law as understood, scores, diagnostics in plain words. Self-contained."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np

from sumgp.report.figures import fit_pictures
from sumgp.report.fit_study import FitStudy
from sumgp.report.interactive import templates, version
from sumgp.report.scores import counts, lengthscales, noise_sds, remark
from sumgp.report.wording import advice, verdict

PLOTTING, DRAWING = "vendor/plotly-cartesian.min.js", "figures.js"


@dataclass(frozen=True)
class PlainTable:
    """A titled table of words: the first column names the row; ``best`` marks cells (row, column) to stress."""

    title: str
    note: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    best: frozenset[tuple[int, int]] = frozenset()


def render_fit(found: FitStudy, title: str, extra: Sequence[PlainTable] = ()) -> str:
    """The page as text; ``extra`` tables come first."""
    shared = {"title": title, "plotting": asset(PLOTTING), "drawing": asset(DRAWING)}
    return templates().get_template("fit_page.html.j2").render(**shared, **_contents(found, extra))


def render_fit_body(found: FitStudy) -> str:
    """The sections of the page alone, for a page that brings look and scripts itself."""
    return templates().get_template("fit_body.html.j2").render(**_contents(found))


def asset(name: str) -> str:
    """A script or style sheet that comes with the package."""
    return resources.files("sumgp.report").joinpath(name).read_text(encoding="utf-8")


def _contents(found: FitStudy, extra: Sequence[PlainTable] = ()) -> dict[str, Any]:
    return {
        "verdict": verdict(found),
        "advice": advice(found),
        "tables": [*extra, *score_tables(found)],
        "pictures": fit_pictures(found),
        "law": found.law_text,
        "facts": [*data_facts(found), ("versions", _versions())],
        "report": str(found.model.fit_report_),
    }


def score_tables(found: FitStudy) -> list[PlainTable]:
    """Outputs, calibration, laws and estimated constants."""
    tables = [_outputs_table(found)]
    if counts(found.left_out):
        tables.append(_calibration_table(found))
    if found.violation is not None:
        tables.append(_law_table(found))
    constants = found.posterior.constants()
    if len(constants):
        rows = tuple(
            (str(name), *(number(v) for v in row)) for name, row in zip(constants.index, constants.to_numpy(), strict=True)
        )
        tables.append(
            PlainTable(
                "Estimated constants", "Lower and upper hold 95 %.", ("constant", "mean", "sd", "lower", "upper"), rows
            )
        )
    return tables


def _outputs_table(found: FitStudy) -> PlainTable:
    data = found.model.data_
    plain = found.plain_left_out
    header = ["output", "measured", "missing", "noise sd", "left-out error"]
    if plain is not None:
        header.append("without the law")
    header.append("inside 95 %")
    best, rows = set(), []
    for t, name in enumerate(found.outputs):
        seen = int(data.measured[:, t].sum())
        row = [name, str(seen), str(len(data.x) - seen), number(noise_sds(found.model)[t]), number(found.left_out.rmse[t])]
        if plain is not None:
            row.append(number(plain.rmse[t]))
            if np.isfinite(plain.rmse[t] + found.left_out.rmse[t]):
                best.add((t, 4 if found.left_out.rmse[t] <= plain.rmse[t] else 5))
        row.append("" if not np.isfinite(found.left_out.inside[t]) else f"{100 * found.left_out.inside[t]:.0f} %")
        rows.append(tuple(row))
    note = "Left-out error: root mean square difference between a measurement and its prediction from all other rows."
    return PlainTable("Outputs", note, tuple(header), tuple(rows), frozenset(best))


def _calibration_table(found: FitStudy) -> PlainTable:
    """How many left-out measurements lie inside their intervals: each output, and all together."""
    of_all = counts(found.left_out)
    named = [(name, counts(found.left_out, output=t)) for t, name in enumerate(found.outputs)]
    if len(named) > 1:
        named.append(("all outputs", of_all))
    rows = tuple((name, *(f"{c.inside} of {c.total}" for c in each)) for name, each in named if each)
    header = ("output", *(f"inside {c.level:.0%}".replace("%", " %") for c in of_all))
    return PlainTable("Calibration by leave-out", remark(of_all[0].total), header, rows)


def _law_table(found: FitStudy) -> PlainTable:
    violation, law = found.violation, found.model.law_
    assert violation is not None and law is not None
    plain = violation.plain if violation.plain is not None else np.full(law.n_rows, np.nan)
    rows = tuple(
        (label, number(raw), number(without), number(own))
        for label, raw, without, own in zip(law.labels, violation.raw, plain, violation.own, strict=True)
    )
    note = "Mean size of left minus right side, in the law's own units."
    return PlainTable("How well the law holds", note, ("law", "measured rows", "fit without the law", "this fit"), rows)


def data_facts(found: FitStudy) -> list[tuple[str, str]]:
    """Pairs of words on data and fit."""
    data, report = found.model.data_, found.model.fit_report_
    sizes = lengthscales(found.model)
    units = {name: f" {dates.unit}" for name, dates in found.posterior.calendar.items()}
    known = [(s, n) for s, n in zip(sizes, data.input_names, strict=True) if np.isfinite(s)]
    lengths = ", ".join(f"{number(s)}{units.get(n, '')} along {n}" for s, n in known)
    return [
        ("data", f"{len(data.x)} rows, inputs {', '.join(data.input_names)}, outputs {', '.join(data.output_names)}"),
        ("prediction points", str(len(found.posterior.x))),
        ("strategy", report.strategy),
        ("kernel", report.kernel + (f"; lengthscale {lengths}" if lengths else "")),
        ("hyperparameters", report.uncertainty),
        ("status", report.status),
    ]


def number(value: float) -> str:
    """Three or four digits, nothing for NaN."""
    if not np.isfinite(value):
        return ""
    return f"{value:.4g}" if 1e-3 <= abs(value) < 1e5 or value == 0 else f"{value:.1e}"


def _versions() -> str:
    names = ("sumgp", "numpy", "scipy", "scikit-learn")
    return f"Python {platform.python_version()}, " + ", ".join(f"{name} {version(name)}" for name in names)
