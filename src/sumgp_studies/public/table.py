"""Records as a table: each set and part, each method, and the ratio to the better baseline."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import numpy as np
import pandas as pd

FROZEN = "frozen"  # the fit without a law of version 0.1.0
BASELINES = (FROZEN, "scikit-learn")


def summary(records: Iterable[dict[str, Any]]) -> pd.DataFrame:
    """One row a set and part, columns (score, method): RMSE over all cases, coverage, NLPD, CPU seconds of a fit."""
    frame = pd.DataFrame(list(records))
    frame["part"] = np.where(frame["case"].str.contains("four laws"), frame["part"] + ", four laws", frame["part"])
    weights = frame["values"]
    for score in ("mse", "coverage", "nlpd"):
        frame[score] = frame[score] * weights
    total = frame.groupby(["set", "part", "method"])[["mse", "coverage", "nlpd", "values"]].sum()
    result = total[["mse", "coverage", "nlpd"]].div(total["values"], axis=0)
    result["rmse"] = np.sqrt(result.pop("mse"))
    result["cpu"] = frame.groupby(["set", "part", "method"])["cpu"].mean()
    wide = cast(pd.DataFrame, result.unstack("method"))
    return wide.swaplevel(axis=1).sort_index(axis=1).swaplevel(axis=1)


def better_baseline(table: pd.DataFrame) -> pd.Series:
    """The smaller RMSE of the two baselines, of those that were run."""
    return cast(pd.DataFrame, table["rmse"]).reindex(columns=list(BASELINES)).min(axis=1)


def page(table: pd.DataFrame) -> str:
    """The table of docs/real-data.md in Markdown."""
    methods = [m for m in ("law", "no law", *BASELINES, "spline") if m in table["rmse"].columns]
    head = "law / better baseline | coverage, law | NLPD, law | CPU s |"
    lines = [f"| set | part | {' | '.join(methods)} | {head}"]
    lines.append("|---|---|" + "---|" * (len(methods) + 4))
    ratio = table["rmse"]["law"] / better_baseline(table)
    for key, row in table.iterrows():
        name, part = cast(tuple[str, str], key)
        rmse = " | ".join(f"{row['rmse', m]:.3f}" for m in methods)
        scores = (
            f"{ratio[name, part]:.2f} | {row['coverage', 'law']:.2f} | {row['nlpd', 'law']:.2f} | {row['cpu', 'law']:.1f}"
        )
        lines.append(f"| {name} | {part} | {rmse} | {scores} |")
    geometric = float(np.exp(np.log(ratio).mean()))
    lines.append("")
    lines.append(f"Geometric mean of the ratios {geometric:.3f}, largest {ratio.max():.2f}, over {len(ratio)} parts.")
    return "\n".join(lines)
