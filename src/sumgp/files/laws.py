"""Constraints as JSON: formulas as text, matrices and sums as numbers. A law given as Python code has no such form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sumgp.errors import ConstraintError, DataError
from sumgp.estimator import as_constraint
from sumgp.files.nodes import Reader, Writer
from sumgp.laws import AllOf, Bounds, Constraint, FormulaConstraint, LinearConstraint, SumConstraint, Term, Unknown
from sumgp.transforms import CustomTransform


def is_storable(constraint: Any, constants: Mapping[str, Any] | None) -> bool:
    """True unless some part of the law is a Python function."""
    try:
        made = as_constraint(constraint, constants)
    except ConstraintError:
        return False
    return made is None or _storable(made)


def _storable(made: Any) -> bool:
    if isinstance(made, FormulaConstraint):
        return made.is_storable
    if isinstance(made, AllOf):
        return all(_storable(part) for part in made.constraints)
    if isinstance(made, LinearConstraint):
        return not (callable(made.F) or callable(made.S) or callable(made.where))
    if isinstance(made, Bounds):
        return not any(callable(value) for value in (*made.lower.values(), *made.upper.values()))
    if isinstance(made, SumConstraint):
        plain = not any(callable(t.coefficient) or isinstance(t.transform, CustomTransform) for t in made.terms)
        return plain and not callable(made.total) and not callable(made.where)
    return False


def write_constraint(made: Any, writer: Writer) -> dict[str, Any]:
    """JSON of a storable constraint."""
    if isinstance(made, FormulaConstraint):
        return {"kind": "formula", "texts": list(made.texts), "constants": writer.write(dict(made.constants))}
    if isinstance(made, AllOf):
        return {"kind": "all", "parts": [write_constraint(part, writer) for part in made.constraints]}
    if isinstance(made, LinearConstraint):
        S = made.S if isinstance(made.S, Unknown) else np.asarray(made.S, dtype=float)
        F, noise = np.asarray(made.F, dtype=float), np.asarray(made.noise, dtype=float)
        return {"kind": "linear", "F": writer.write(F), "S": writer.write(S), "noise": writer.write(noise)}
    if isinstance(made, Bounds):
        return {"kind": "bounds", "lower": writer.write(made.lower), "upper": writer.write(made.upper)}
    if isinstance(made, SumConstraint):
        total = made.total if isinstance(made.total, Unknown) else float(made.total)  # type: ignore[arg-type]
        return {"kind": "sum", "terms": writer.write(made.terms), "total": writer.write(total), "noise": float(made.noise)}
    raise DataError(f"save: a {type(made).__name__} cannot be stored; give a formula")


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
