"""Save and load a fitted ConstrainedGP: a loaded model predicts bit for bit as the saved one."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sumgp.data import UNITS, Data, Dates, Scaling
from sumgp.errors import ConstraintError, DataError, SumGPError, warn
from sumgp.estimator import ConstrainedGP, FitReport, as_constraint
from sumgp.files.archive import pack, unpack, write_file
from sumgp.files.laws import read_constraint, write_constraint
from sumgp.files.nodes import Reader, Writer
from sumgp.laws import Constraint, Law, bind_constraint, learnt_errors, with_errors
from sumgp.prediction import Bounding
from sumgp.strategies import Fitted, Strategy, Unconstrained

FORMAT = "sumgp model"
VERSION = 1  # of the format: a reader refuses files of a later one
SETTINGS = tuple(name for name in signature(ConstrainedGP).parameters if name not in ("constraint", "constants"))
SAME_LAW = 1e-9  # relative difference of residuals up to which a law handed over again is the one of the fit
# What arithmetic on arrays of disagreeing shapes raises: a file of right types can still make no sense.
SENSELESS = (SumGPError, ValueError, TypeError, IndexError, KeyError, AttributeError, ArithmeticError, np.linalg.LinAlgError)


def save(model: ConstrainedGP, path: str | PathLike[str]) -> None:
    """Write a fitted model to one file; the file is complete or not there.

    A law given as Python code cannot be stored: the model is then saved without it, with a warning, and has to be
    loaded with ``sumgp.load(path, constraint=...)``.
    """
    content = model_bytes(model)
    target = Path(path)
    if target.is_dir():
        raise DataError(f"path: expected the name of a file, got the folder {str(target)!r}; add a name such as model.sumgp")
    write_file(target, content)


def model_bytes(model: ConstrainedGP) -> bytes:
    """The content of a model file."""
    check_is_fitted(model, "fitted_", msg="save: this %(name)s is not fitted yet; call fit(X, Y) first")
    law = model.law_
    writer, stored = Writer(law), None
    bounds = None if model.bounding_ is None else model.bounding_.bounds
    if law is not None or bounds is not None:
        try:
            stored = write_constraint(as_constraint(model.constraint, model.constants), writer)
        except (DataError, ConstraintError):
            writer = Writer(law)
            warn(
                "the law is given as Python code, which a model file cannot hold: it is left out; pass it when loading, "
                "sumgp.load(path, constraint=...), or give the law as a formula"
            )
    report = model.fit_report_
    document = {
        "format": FORMAT,
        "version": VERSION,
        "constraint": stored,
        "law": None if law is None else _law_facts(model, law, writer),
        "bounds": None if bounds is None else [_law_facts(model, row, writer) for row in bounds.laws],
        "settings": {name: _setting(name, getattr(model, name), writer) for name in SETTINGS},
        "data": writer.write(model.data_),
        "scaling": writer.write(model.scaling_),
        "weights": writer.write(model.fitted_.weights),
        "fitted_law": writer.write(model.fitted_.law),
        "components": [writer.write(component) for component in model.fitted_.components],
        "chosen": writer.write(model.strategy_),
        "calendar": {name: vars(dates) for name, dates in model.calendar_.items()},
        "report": plain({**report.details, **{name: getattr(report, name) for name in REPORT}}),
    }
    return pack(document, writer.arrays)


REPORT = ("status", "strategy", "kernel", "uncertainty", "log_evidence")


def _setting(name: str, value: Any, writer: Writer) -> Any:
    try:
        return writer.write(list(value) if name in ("outputs", "inputs") and value is not None else value)
    except DataError as error:
        raise DataError(f"save: the setting {name}= cannot be stored: {error}") from error


def _law_facts(model: ConstrainedGP, law: Law, writer: Writer) -> dict[str, Any]:
    """Names, and residuals at the training rows by which a law handed over again is recognised."""
    f, x = _probe(model.data_, model.scaling_, law)
    with np.errstate(all="ignore"):
        residual = np.nan_to_num(law.residual(f, x))
    facts = {"labels": list(law.labels), "unknowns": list(law.unknowns), "extra_columns": list(law.extra_columns)}
    return {**facts, "residual": writer.write(residual)}


def _probe(data: Data, scaling: Scaling, law: Law) -> tuple[np.ndarray, np.ndarray]:
    """Outputs and inputs of up to eight rows at which laws are compared."""
    x = data.x[:8]
    steps = np.linspace(0.2, 1.3, len(x))[:, None]
    f = scaling.y_shift + scaling.y_scale * steps * (1.0 + 0.1 * np.arange(len(scaling.y_scale)))
    return np.concatenate([f, np.ones((len(x), law.n_columns - f.shape[1]))], axis=1), x


def plain(value: Any, other: Callable[[Any], Any] = str) -> Any:
    """Numbers and words as JSON: arrays become lists; ``other`` is made of numbers that are not finite and anything else."""
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist(), other)
    if isinstance(value, dict):
        return {str(key): plain(item, other) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item, other) for item in value]
    if value is None or isinstance(value, (bool, int, str)) or (isinstance(value, float) and np.isfinite(value)):
        return value
    return other(value)


def load(path: str | PathLike[str], constraint: Any = None, constants: Any = None) -> ConstrainedGP:
    """The model in a file written by ``save``.

    ``constraint``: the law again, for a model whose law was Python code (``constants`` as in ConstrainedGP). A file that
    is damaged, truncated, hostile or of a later version raises DataError.
    """
    document, arrays = unpack(Path(path))
    if document.get("format") != FORMAT:
        raise DataError(f"{path}: not a model file of sumgp; check the path")
    if document.get("version") != VERSION:
        found = repr(document.get("version"))[:20]
        raise DataError(f"{path}: written in version {found} of the format, this program reads {VERSION}; update sumgp")
    try:
        model = _rebuilt(document, arrays, constraint, constants)
        _try_out(model)
    except SENSELESS as error:
        if isinstance(error, SumGPError):
            # Errors in formulas have a second line that points at the place.
            raise type(error)(f"{path}: {' '.join(str(error).split())}") from error
        raise DataError(f"{path}: its parts do not fit together ({type(error).__name__}); the file is damaged") from error
    return model


def _rebuilt(document: dict[str, Any], arrays: list[np.ndarray], constraint: Any, constants: Any) -> ConstrainedGP:
    reader = Reader(arrays)
    data, scaling = reader.read(document["data"]), reader.read(document["scaling"])
    if not isinstance(data, Data) or not isinstance(scaling, Scaling):
        raise DataError("model file: data or scaling are missing; it is damaged")
    _check_data(data, scaling)
    made = _constraint(document, reader, constraint, constants)
    law, bounds = bind_constraint(made, data.output_names, data.input_names, data.extra_columns)
    law = None if law is None else with_errors(law, learnt_errors(law, data))
    laws, facts = [() if law is None else (law,), () if bounds is None else bounds.laws], _stored_facts(document)
    if [len(part) for part in laws] != [len(part) for part in facts]:
        raise ConstraintError("constraint: the fitted one had other laws or bounds; pass that one")
    for part, fact in zip((*laws[0], *laws[1]), (*facts[0], *facts[1]), strict=True):
        _check_law(fact, part, data, scaling, reader)
    reader.law = law
    components = tuple(reader.read(node) for node in document["components"])
    fitted = Fitted(components, reader.read(document["weights"]), reader.read(document["fitted_law"]))
    settings = {name: reader.read(document["settings"][name]) for name in SETTINGS}
    model = ConstrainedGP(made, **settings)
    chosen = reader.read(document["chosen"])
    if not isinstance(chosen, Strategy):
        raise DataError("model file: its strategy is missing; it is damaged")
    model.calendar_ = _calendar(document.get("calendar", {}), data)
    model.bounding_ = Bounding.of(bounds, None if isinstance(chosen, Unconstrained) else law, data)
    model.law_, model.data_, model.scaling_ = law, data, scaling
    model.fitted_, model.strategy_ = fitted, chosen
    model.n_features_in_, model.n_outputs_ = data.x.shape[1], data.y.shape[1]
    report = document["report"]
    details = {key: value for key, value in report.items() if key not in REPORT}
    model.fit_report_ = FitReport(**{name: report[name] for name in REPORT}, details=details)
    return model


def _calendar(stored: Any, data: Data) -> dict[str, Dates]:
    """The inputs that are dates; files of before have none."""
    if not isinstance(stored, dict) or not set(stored) <= set(data.input_names):
        raise DataError("model file: its dates are not those of inputs; it is damaged")
    found = {}
    for name, entry in stored.items():
        dates = Dates(str(entry["unit"]), str(entry["origin"]), None if entry["zone"] is None else str(entry["zone"]))
        if dates.unit not in UNITS or dates.times(np.zeros(1)).isna().any():
            raise DataError(f"model file: the dates of {name!r} cannot be read; it is damaged")
        found[name] = dates
    return found


def _constraint(document: dict[str, Any], reader: Reader, constraint: Any, constants: Any) -> Constraint | None:
    """The stored law, or the one handed over where the file has none."""
    law, bounds = _stored_facts(document)
    if not law and not bounds:
        if constraint is not None:
            raise ConstraintError("constraint: this model was fitted without a law; load it without constraint=")
        return None
    if document["constraint"] is None:
        labels = "; ".join(str(label) for facts in (*law, *bounds) for label in facts["labels"])
        if constraint is None:
            raise ConstraintError(
                f"constraint: the law of this model is Python code and not in the file; load it with constraint= ({labels})"
            )
        made = as_constraint(constraint, constants)
        if not isinstance(made, Constraint):
            raise ConstraintError(
                "constraint: expected a formula or constraint object, got a bound law; pass the constraint itself"
            )
        return made
    if constraint is not None:
        raise ConstraintError("constraint: this model's law is in the file; load it without constraint=")
    return read_constraint(document["constraint"], reader)


def _stored_facts(document: dict[str, Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """What the file tells of the law, and of each bound; files of before have no bounds."""
    law = document["law"]
    return [] if law is None else [law], list(document.get("bounds") or [])


def _check_law(facts: dict[str, Any], law: Law, data: Data, scaling: Scaling, reader: Reader) -> None:
    """The bound law must have the names and values of the one that was fitted."""
    if list(law.unknowns) != facts["unknowns"] or list(law.extra_columns) != facts["extra_columns"]:
        raise ConstraintError(
            "constraint: its estimated constants or data columns differ from those of the fitted law; pass that law"
        )
    f, x = _probe(data, scaling, law)
    stored = reader.read(facts["residual"])
    with np.errstate(all="ignore"):
        residual = np.nan_to_num(law.residual(f, x))
        size = np.nan_to_num(law.magnitude(f, x)) + 1e-300
    if (
        not isinstance(stored, np.ndarray)
        or stored.shape != residual.shape
        or np.any(np.abs(stored - residual) > SAME_LAW * size)
    ):
        raise ConstraintError(
            "constraint: this is not the law that was fitted (its values at the data differ); pass that law"
        )


def _check_data(data: Data, scaling: Scaling) -> None:
    T, D = len(data.output_names), len(data.input_names)
    sizes: list[tuple[np.ndarray, tuple[int, ...]]] = [
        (data.y, (len(data.x), T)),
        (data.x, (len(data.y), D + len(data.extra_columns))),
    ]
    seen = data.x.shape[1:] if scaling.x_shift.shape == data.x.shape[1:] else (D,)  # columns of the law may be inputs too
    sizes += [(scaling.x_shift, seen), (scaling.x_scale, seen), (scaling.y_shift, (T,)), (scaling.y_scale, (T,))]
    if not len(data.x) or any(a.shape != wanted or a.dtype != np.float64 for a, wanted in sizes):
        raise DataError("model file: data and scaling do not have the same numbers of rows and columns; it is damaged")
    if not all(np.all(np.isfinite(a)) for a, _ in sizes[1:]) or np.any(np.isinf(data.y)):
        raise DataError("model file: data or scaling are not finite; it is damaged")


def _try_out(model: ConstrainedGP) -> None:
    """One prediction with every component: parts of the right types can still disagree in shape."""
    weights, components = model.fitted_.weights, model.fitted_.components
    if not isinstance(weights, np.ndarray) or weights.shape != (len(components),) or not len(components):
        raise DataError("model file: weights and components differ in number; it is damaged")
    if np.any(weights < 0) or abs(float(weights.sum()) - 1.0) > 1e-6:
        raise DataError("model file: the weights are not probabilities; the file is damaged")
    with np.errstate(all="ignore"):
        posterior = model.posterior(model.data_.x[:1])
        mean, std = posterior.mean, posterior.std
    if mean.shape != (1, model.n_outputs_) or not np.all(np.isfinite(mean)) or not np.all(np.isfinite(std)):
        raise DataError("model file: it does not give finite predictions; it is damaged")
