"""Constraints as JSON: formulas as text, matrices and sums as numbers. A law given as Python code has no such form."""

from __future__ import annotations

from typing import Any

import numpy as np

from sumgp.errors import ConstraintError, DataError
from sumgp.files.nodes import Reader, Writer
from sumgp.laws import AllOf, Bounds, Constraint, FormulaConstraint, LinearConstraint, SumConstraint, Term, Unknown


def write_constraint(made: Any, writer: Writer) -> dict[str, Any]:
    """JSON of a constraint; DataError where some part of it is a Python function."""
    if isinstance(made, FormulaConstraint):
        return {"kind": "formula", "texts": list(made.texts), "constants": writer.write(dict(made.constants))}
    if isinstance(made, AllOf):
        return {"kind": "all", "parts": [write_constraint(part, writer) for part in made.constraints]}
    if isinstance(made, LinearConstraint) and made.where is None:
        parts = {"F": made.F, "S": made.S, "noise": made.noise}
        return {"kind": "linear", **{name: writer.write(_numbers(part)) for name, part in parts.items()}}
    if isinstance(made, Bounds):
        return {"kind": "bounds", "lower": writer.write(made.lower), "upper": writer.write(made.upper)}
    if isinstance(made, SumConstraint) and made.where is None:
        total = made.total if isinstance(made.total, Unknown) or callable(made.total) else float(made.total)
        return {"kind": "sum", "terms": writer.write(made.terms), "total": writer.write(total), "noise": float(made.noise)}
    raise DataError(f"save: a {type(made).__name__} cannot be stored; give a formula")


def _numbers(value: Any) -> Any:
    """An array; a constant to be estimated, or a function, stays what it is."""
    return value if isinstance(value, Unknown) or callable(value) else np.asarray(value, dtype=float)


def read_constraint(node: Any, reader: Reader, depth: int = 0) -> Constraint:
    """The constraint again."""
    kind = node.get("kind") if isinstance(node, dict) else None
    try:
        if kind == "formula" and all(isinstance(text, str) for text in node["texts"]):
            return FormulaConstraint(list(node["texts"]), reader.read(node["constants"]))
        if kind == "all" and depth == 0:
            return AllOf([read_constraint(part, reader, depth + 1) for part in node["parts"]])
        if kind == "linear":
            F, S, noise = (reader.read(node[key]) for key in ("F", "S", "noise"))
            if isinstance(F, np.ndarray) and isinstance(noise, np.ndarray) and isinstance(S, (np.ndarray, Unknown)):
                return LinearConstraint(F, S, noise=noise)  # type: ignore[arg-type]
        if kind == "bounds":
            lower, upper = reader.read(node["lower"]), reader.read(node["upper"])
            if isinstance(lower, dict) and isinstance(upper, dict):
                return Bounds(lower or None, upper or None)
        if kind == "sum":
            terms, total = reader.read(node["terms"]), reader.read(node["total"])
            if isinstance(terms, tuple) and all(isinstance(t, Term) for t in terms) and isinstance(total, (float, Unknown)):
                return SumConstraint(terms, total, noise=float(node["noise"]))
    except (KeyError, TypeError, ConstraintError) as error:
        raise DataError(f"model file: its law cannot be read ({error}); the file is damaged") from error
    raise DataError(f"model file: a law of unknown kind {kind!r:.40}; it is damaged or of a later version")
