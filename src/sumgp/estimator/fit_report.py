"""What a fit did: readable as attributes, as ``report["key"]``, printed, and as a table in notebooks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from sumgp.errors import DataError
from sumgp.laws import Law
from sumgp.notebook import facts_table, listed

# Details that are shown where a fit has them.
SHOWN = (
    "solver", "dates", "effective_sample_size", "taper", "taper_reason", "kinds", "kinds_reason", "law", "bounds",
    "measured_outside_bounds", "closed_data", "dropped_rows", "candidate_weights", "constants",
)  # fmt: skip


@dataclass(frozen=True, repr=False)
class FitReport(Mapping[str, Any]):
    """What a fit did: readable as attributes, as a dictionary (``report["key"]``, ``report.items()``), and by ``print``."""

    status: str
    strategy: str
    kernel: str
    uncertainty: str
    log_evidence: float
    details: dict[str, Any] = field(default_factory=dict)

    def __getitem__(self, key: str) -> Any:
        if key not in set(self):
            raise KeyError(key)
        return self.details[key] if key in self.details else getattr(self, key)

    def __iter__(self) -> Iterator[str]:
        own = [f.name for f in fields(self) if f.name != "details"]
        return iter([*own, *(key for key in self.details if key not in own)])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def facts(self) -> list[tuple[str, str]]:
        """Name and value of what most users want to know."""
        found = [
            ("status", self.status),
            ("strategy", self.strategy),
            ("kernel", self.kernel),
            ("uncertainty", self.uncertainty),
            ("log evidence", f"{self.log_evidence:.3f}"),
        ]
        return found + [(key.replace("_", " "), str(self.details[key])) for key in SHOWN if key in self.details]

    def __repr__(self) -> str:
        return f"FitReport(status={self.status!r}, strategy={self.strategy!r}, log_evidence={self.log_evidence:.3f})"

    def __str__(self) -> str:
        return "\n".join(f"{name}: {value}" for name, value in self.facts())

    def _repr_html_(self) -> str:
        return facts_table(self.facts())


def estimator_table(model: Any) -> str:
    """What a notebook shows of a ConstrainedGP: the law and names, and of a fitted model how the fit went."""
    given = model.constraint
    law = "; ".join(map(str, given)) if isinstance(given, (list, tuple)) else given
    facts = [("law", law), ("inputs", model.inputs), ("outputs", model.outputs), ("constants", model.constants)]
    report = getattr(model, "fit_report_", None)
    if report is None:
        return facts_table([("ConstrainedGP", "not fitted"), *((n, v) for n, v in facts if v is not None)])
    data = model.data_
    facts[1:3] = [("inputs", listed(data.input_names)), ("outputs", listed(data.output_names))]
    rows = ("rows", f"{len(data.x)}, {int(data.measured.sum())} of {data.y.size} values measured")
    return facts_table([("ConstrainedGP", "fitted"), *((n, v) for n, v in facts if v is not None), rows, *report.facts()])


def r_squared(mean: np.ndarray, truth: np.ndarray, sample_weight: Any) -> float:
    """Coefficient of determination of means (n, T), averaged over the outputs that ``truth`` (n, T, NaN = unknown) has."""
    from sklearn.metrics import r2_score

    weight = np.ones(len(mean)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    seen = ~np.isnan(truth)
    outputs = np.flatnonzero(seen.any(axis=0))
    if not len(outputs):
        raise DataError("y", "at least one measured value", "only NaN", "score rows that were measured")
    parts = [(truth[seen[:, t], t], mean[seen[:, t], t], weight[seen[:, t]]) for t in outputs]
    return float(np.mean([r2_score(y, m, sample_weight=w) for y, m, w in parts]))


def soft_law_report(law: Law) -> dict[str, list[str]]:
    """What complete rows told about the errors of laws that hold only roughly, in words; empty where nothing was asked."""
    found = [f"{label}: {line}" for label, lines in zip(law.labels, law.notes, strict=False) for line in lines]
    told = [line.replace(": error: ", ": ", 1) for line in found if ": error: " in line]
    return {"soft_laws": told} if told else {}
