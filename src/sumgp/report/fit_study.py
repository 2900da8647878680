"""Everything a report of a fit says, computed once: predictions with and without the law, scores, warnings."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sumgp.errors import SumGPError, SumGPWarning
from sumgp.estimator import ConstrainedGP
from sumgp.laws import explain_law
from sumgp.prediction import Posterior
from sumgp.report.scores import LeftOut, Violation, counts, law_violation, leave_one_out, lengthscales, noise_sds
from sumgp.solvers import Markov

LEVEL = 0.95  # nominal coverage of the bands shown


@dataclass(frozen=True)
class FitStudy:
    """A fitted model at the prediction points, beside the same data fitted without the law.

    ``plain`` is None where there is no law, or where the fit without it failed (``plain_trouble`` says why).
    """

    model: ConstrainedGP
    posterior: Posterior
    plain: Posterior | None
    plain_trouble: str
    left_out: LeftOut
    plain_left_out: LeftOut | None
    violation: Violation | None
    warnings: tuple[str, ...]

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the outputs."""
        return self.posterior.output_names

    @property
    def law_text(self) -> str:
        """The law and the bounds as understood, several lines; without a law, a sentence that says so."""
        law, bounding = self.model.law_, self.model.bounding_
        text = "no law: a plain multitask Gaussian process" if law is None else explain_law(law)
        return "\n".join([text, *([] if bounding is None else bounding.bounds.explain())])


def caught(action: Callable[[], Any]) -> tuple[Any, tuple[str, ...]]:
    """The action's result and the texts of the package's own warnings on the way; other warnings pass."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", SumGPWarning)
        result = action()
    own = [str(w.message) for w in found if issubclass(w.category, SumGPWarning)]
    for other in found:
        if not issubclass(other.category, SumGPWarning):
            warnings.warn_explicit(other.message, other.category, other.filename, other.lineno)
    return result, tuple(dict.fromkeys(own))


def study(model: ConstrainedGP, x: np.ndarray, told: tuple[str, ...], progress: Callable[[str], None]) -> FitStudy:
    """Predict at x (n, D + E), fit the same data without the law, and score both. ``told`` are the fit's own warnings."""
    plain_model, trouble = None, ""
    if model.law_ is not None:
        progress("the same without the law, for comparison")
        plain_model, trouble = _without_law(model)
    progress("predictions")
    posterior = model.posterior(x)
    plain = None if plain_model is None else plain_model.posterior(x[:, : model.data_.n_inputs])
    return FitStudy(
        model=model,
        posterior=posterior,
        plain=plain,
        plain_trouble=trouble,
        left_out=leave_one_out(model),
        plain_left_out=None if plain_model is None else leave_one_out(plain_model),
        violation=None if model.law_ is None else law_violation(model, posterior, plain),
        warnings=told,
    )


def _without_law(model: ConstrainedGP) -> tuple[ConstrainedGP | None, str]:
    """The same settings without the law; outputs that were never measured cannot be learned then."""
    data = model.data_
    # Other solvers may suit only the kernels that a law leaves to choose from.
    solver = model.solver if isinstance(model.solver, Markov) else None
    own = {"outputs": data.output_names, "inputs": data.input_names, "solver": solver}
    without = {"constraint": None, "constants": None, "strategy": None}
    twin = ConstrainedGP(**{**model.get_params(deep=False), **own, **without})
    try:
        fitted, _ = caught(lambda: twin.fit(data.x[:, : data.n_inputs], data.y))
    except SumGPError as error:
        return None, str(error)
    return fitted, ""


def as_numbers(found: FitStudy) -> dict[str, Any]:
    """The study as plain numbers and words, for ``--json``."""
    report, data = found.model.fit_report_, found.model.data_
    result: dict[str, Any] = {
        "rows": len(data.x),
        "inputs": list(data.input_names),
        "outputs": list(data.output_names),
        "missing": (~data.measured).sum(axis=0),
        "law": [] if found.model.law_ is None else list(found.model.law_.labels),
        "status": report.status,
        "strategy": report.strategy,
        "kernel": report.kernel,
        "noise_sd": noise_sds(found.model),
        "lengthscale": lengthscales(found.model),
        "left_out_rmse": found.left_out.rmse,
        "left_out_inside_95": found.left_out.inside,
        "left_out_coverage": [
            {"level": c.level, "inside": c.inside, "measurements": c.total} for c in counts(found.left_out)
        ],
        "warnings": list(found.warnings),
    }
    if found.plain_left_out is not None:
        result["left_out_rmse_without_law"] = found.plain_left_out.rmse
    if found.violation is not None:
        result["violation"] = {"raw": found.violation.raw, "without_law": found.violation.plain, "own": found.violation.own}
    constants = found.posterior.constants()
    if len(constants):
        result["constants"] = {str(name): row.to_dict() for name, row in constants.iterrows()}
    return result
