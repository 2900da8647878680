"""Results on public sets as a page: a table for each set, a summary, and one figure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import numpy as np
import pandas as pd

from sumgp_studies.experiments import Record
from sumgp_studies.public.catalogue import PublicSet
from sumgp_studies.public.competitors import OURS

LAW = "law"
LOST = 1.02  # ratio to the best competitor above which we say that we lose
DETAILS = re.compile(r"'[^']*'|[-+.\d]+(e[-+]?\d+)?")  # names and numbers: warnings that differ only there are alike
GOOD = (0.92, 0.98)  # coverages of 95 % intervals that need no remark


def scores_table(records: Sequence[Record]) -> pd.DataFrame:
    """One row a (set, part, method): root of the mean square error over cases, coverage, NLPD, CPU seconds, failures."""
    rows = []
    for r in records:
        name, _, part = r.experiment.partition("/")
        rows.append((name, part, r.dataset, r.method, r.rmse, r.coverage, r.nlpd, r.cpu_seconds, r.failed))
    columns = ["set", "part", "case", "method", "rmse", "coverage", "nlpd", "cpu", "failed"]
    frame = pd.DataFrame(rows, columns=pd.Index(columns))
    # A run may have been cut short: only cases that all methods have seen are compared.
    methods = frame.groupby(["set", "part", "case"])["method"].transform("nunique")
    most = methods.groupby([frame["set"], frame["part"]]).transform("max")
    frame = frame[methods == most]
    frame["rmse"] = frame["rmse"].astype(float) ** 2
    groups = frame.groupby(["set", "part", "method"], sort=False)
    table = groups[["rmse", "coverage", "nlpd", "cpu", "failed"]].mean()
    table["rmse"] = np.sqrt(table["rmse"])
    table["cases"] = groups["case"].nunique()
    return table.reset_index()


def ratios(table: pd.DataFrame) -> pd.DataFrame:
    """One row a (set, part): our RMSE with the law over the best competitor's, and our coverage."""
    rows = []
    for key, group in table[table["failed"] == 0].groupby(["set", "part"], sort=False):
        name, part = cast(tuple[str, str], key)
        ours = group[group["method"] == LAW]
        others = group[~group["method"].isin(OURS)]
        if len(ours) and len(others):
            best = others.iloc[int(np.argmin(others["rmse"]))]
            rows.append(
                (name, part, ours["rmse"].iloc[0] / best["rmse"], best["method"], ours["coverage"].iloc[0], len(others))
            )
    return pd.DataFrame(rows, columns=pd.Index(["set", "part", "ratio", "best competitor", "coverage", "competitors"]))


def write_page(
    records: Sequence[Record], sets: Sequence[PublicSet], hierarchies: dict[str, dict[str, float]], out: Path
) -> Path:
    """Write public.md and public.png below the folder ``out``; returns the page's path."""
    table = scores_table(records)
    summary = ratios(table)
    doubts = {entry.name: _doubts(records, entry.name) for entry in sets}
    lines = ["# Public data with known laws", "", *page_lines(table, summary, sets, doubts)]
    for name, scores in hierarchies.items():
        lines += [f"## Hierarchy: {name}", "", "| method | sCRPS |", "|---|---|"]
        lines += [*(f"| {method} | {score:.5f} |" for method, score in scores.items()), ""]
    out.mkdir(parents=True, exist_ok=True)
    path = out / "public.md"
    path.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    if len(summary):
        draw(summary, out / "public.png")
    return path


def page_lines(
    table: pd.DataFrame, summary: pd.DataFrame, sets: Sequence[PublicSet], doubts: dict[str, list[str]]
) -> list[str]:
    """Summary and figure, then for each set what counts, with all scores folded below; ``doubts``: lines on our warnings."""
    lines = [*_summary_lines(summary), "", "![ratios and coverage](public.png)", ""]
    for entry in sets:
        own, parts = table[table["set"] == entry.name], summary[summary["set"] == entry.name]
        if len(own):
            lines += [f"## {entry.title}", "", f"`{entry.name}`. Source: {entry.source}; licence: {entry.licence}.", ""]
            lines += [*_parts_table(parts), ""] if len(parts) else []
            lost = parts[parts["ratio"] > LOST]
            lines += [f"Where we lose: {entry.cause}", ""] if len(lost) and entry.cause else []
            lines += [f"Published, not measured here: {entry.published}", ""] if entry.published else []
            lines += ['<details markdown="1"><summary>All scores</summary>', "", *_set_table(own), *doubts[entry.name], ""]
            lines += ["</details>", ""]
    return lines


def _parts_table(parts: pd.DataFrame) -> list[str]:
    lines = ["| part | law / best | best competitor | coverage |", "|---|---|---|---|"]
    for _, row in parts.sort_values("part", kind="stable").iterrows():
        lines.append(f"| {row['part']} | {row['ratio']:.2f} | {row['best competitor']} | {row['coverage']:.2f} |")
    return lines


def _summary_lines(summary: pd.DataFrame) -> list[str]:
    if summary.empty:
        return ["No set has both our fit and a competitor yet."]
    ratio, coverage = summary["ratio"], summary["coverage"]
    mean = float(np.exp(np.log(ratio).mean()))
    lost, wide = summary[ratio > LOST], summary[(coverage < GOOD[0]) | (coverage > GOOD[1])]
    lines = [
        f"RMSE with the law over the best competitor's, chosen after the fact for each part: geometric mean {mean:.2f} over "
        f"{len(summary)} parts of {summary['set'].nunique()} sets, largest {ratio.max():.2f}. Below 1 we are better; we are "
        f"in {int((ratio <= 1.0).sum())} parts."
    ]
    if len(lost):
        lines += [
            "",
            "A competitor is better by more than 2 % in:",
            "",
            "| part | law / best | best competitor |",
            "|---|---|---|",
        ]
        lines += [f"| {r['set']}, {r['part']} | {r['ratio']:.2f} | {r['best competitor']} |" for _, r in lost.iterrows()]
    if len(wide):
        named = ", ".join(f"{r['set']} {r['part']} ({r['coverage']:.2f})" for _, r in wide.iterrows())
        lines += ["", f"Our 95 % intervals cover less than 92 % or more than 98 % in {len(wide)} parts: {named}."]
    return lines


def _doubts(records: Sequence[Record], name: str) -> list[str]:
    """What our fits with the law warned of: one line for each kind of warning, with an example."""
    told = [r for r in records if r.method == LAW and r.experiment.partition("/")[0] == name]
    kinds: dict[str, list[tuple[int, str]]] = {}
    for record in told:
        for words in record.warnings or ():
            kinds.setdefault(DETAILS.sub("", words), []).append((record.dataset, words))
    sets = len({r.dataset for r in told})
    return [
        line
        for pairs in kinds.values()
        for line in ("", f"Our fits warned in {len({k for k, _ in pairs})} of {sets} data sets, for example: {pairs[0][1]}.")
    ]


def _set_table(own: pd.DataFrame) -> list[str]:
    head = "| part | method | RMSE | coverage of 95 % intervals | NLPD | CPU s | data sets |"
    lines = [head, "|---|---|---|---|---|---|---|"]
    for _, row in own.sort_values("part", kind="stable").iterrows():
        name = f"**{row['method']}**" if row["method"] == LAW else row["method"]
        if row["failed"]:
            lines.append(f"| {row['part']} | {name} | failed | | | | {row['cases']} |")
            continue
        numbers = f"{row['rmse']:.4g} | {row['coverage']:.2f} | {row['nlpd']:.2f} | {row['cpu']:.1f}"
        lines.append(f"| {row['part']} | {name} | {numbers} | {row['cases']} |")
    return lines


def draw(summary: pd.DataFrame, path: Path) -> None:
    """Ratios and coverages side by side, one line for each part."""
    from matplotlib.figure import Figure

    summary = summary.sort_values("set", kind="stable")
    figure = Figure(figsize=(9.0, 1.2 + 0.22 * len(summary)), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
    labels = [f"{row['set']}, {row['part']}" for _, row in summary.iterrows()]
    place = np.arange(len(labels))[::-1]
    better = summary["ratio"] <= 1.0
    left.scatter(summary["ratio"], place, c=np.where(better, "tab:blue", "tab:orange"), zorder=2)
    left.axvline(1.0, color="0.5", linewidth=1)
    left.set(xscale="log", yticks=place, yticklabels=labels, xlabel="RMSE with the law / best competitor")
    left.set_xticks([0.125, 0.25, 0.5, 1.0, 2.0], labels=["0.125", "0.25", "0.5", "1", "2"])
    left.minorticks_off()
    left.set_ylim(-1.0, len(labels))
    right.scatter(100 * summary["coverage"], place, color="tab:blue", zorder=2)
    right.axvspan(92, 98, color="0.9")
    right.axvline(95, color="0.5", linewidth=1)
    right.set(xlabel="coverage of 95 % intervals, %", xlim=(60, 101))
    figure.savefig(path, dpi=130)
