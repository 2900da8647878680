"""What is compared: our fits with and without the law, independent scikit-learn GPs and splines moved onto the law."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.interpolate import RBFInterpolator, make_smoothing_spline
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

import sumgp
from sumgp.errors import SumGPWarning
from sumgp.laws import FormulaConstraint, Law
from sumgp_studies.public.case import Case

PROJECTION_STEPS = 12
SMOOTHINGS = 10.0 ** np.arange(-3.0, 4.0)  # of a thin-plate spline on inputs of range one and outputs of variance one
FOLDS = 5
NORMAL_95 = 1.959963984540054
FEWEST_FOR_SPLINE = 5
KNOWN = 1e-10  # share of its variance that a measured cell keeps: what was measured does not move


class Prediction(NamedTuple):
    """Means, ends of 95 % intervals and log densities of the scored values, (n, T) each."""

    mean: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    log_density: np.ndarray


Predict = Callable[[np.ndarray, np.ndarray], Prediction]


@dataclass(frozen=True)
class Gaussians:
    """Independent outputs: means and variances (n, T) of the scored values."""

    mean: np.ndarray
    variance: np.ndarray


def predicted(case: Case, method: str) -> Predict:
    """Fit the case; the function gives predictions at x (n, D + E) and needs the values (n, T) for their densities."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SumGPWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        return METHODS[method](case)


def fitted(case: Case, law: bool) -> Predict:
    """ConstrainedGP with its defaults; groups where the set says that outputs are coordinates."""
    columns = [*case.inputs, *(case.extra if law else ())]
    gp = sumgp.ConstrainedGP(
        [*(case.own_laws or case.laws), *case.bounds] if law else None,
        outputs=list(case.outputs),
        inputs=list(case.inputs),
        constants=case.constants if law else None,
        groups=[list(group) for group in case.groups] or None,
    )
    x, y = (case.x, case.y) if case.system is None or not law else with_ends(case)
    gp.fit(pd.DataFrame(x[:, : len(columns)], columns=columns), y)

    def predict(x: np.ndarray, y: np.ndarray) -> Prediction:
        table, cells = pd.DataFrame(x[:, : len(columns)], columns=columns), cells_at(case, x, y)
        if cells is not None and not case.latent:
            rows = gp.posterior(table, given=cells).observed()
            lower, upper = rows.interval(0.95)
            return Prediction(rows.mean, lower, upper, normal_log_density(y, rows.mean, np.maximum(rows.std, 1e-300)))
        posterior = gp.posterior(table)
        shown = posterior if case.latent else posterior.observed()
        lower, upper = shown.interval(0.95)
        return Prediction(posterior.mean, lower, upper, shown.log_density(y))

    return predict


def with_ends(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """The rows, and rows without measurements where the scored range begins and ends: the equation holds there too."""
    scored = np.concatenate([case.x, *(part.x for part in case.parts)])
    ends = np.stack([scored.min(axis=0), scored.max(axis=0)])
    return np.concatenate([case.x, ends]), np.concatenate([case.y, np.full((2, case.y.shape[1]), np.nan)])


def cells_at(case: Case, x: np.ndarray, y: np.ndarray) -> np.ndarray | None:
    """(n, T) cells of the case's own table in the rows x, NaN = not measured; None where none of them is in it.

    Where a scored value in y (n, T) was measured in the table too, the row is another one at the same place.
    """
    place = {tuple(row): k for k, row in enumerate(case.x.tolist())}
    rows = [place.get(tuple(row)) for row in x.tolist()]
    cells = np.stack([np.full(case.y.shape[1], np.nan) if k is None else case.y[k] for k in rows])
    cells[(~np.isnan(cells) & ~np.isnan(y)).any(axis=1)] = np.nan
    return None if np.isnan(cells).all() else cells


def normal_log_density(y: np.ndarray, mean: np.ndarray, sd: np.ndarray) -> np.ndarray:
    """(n, T) log densities of Gaussians."""
    return -0.5 * ((y - mean) / sd) ** 2 - np.log(sd) - 0.5 * np.log(2.0 * np.pi)


def independent(case: Case, model: Callable[[Case], Callable[[np.ndarray], Gaussians]]) -> Predict:
    """Independent outputs, then each point moved onto the law in the metric of their variances.

    Cells that were measured in the row stay as they are: the law moves the others.
    """
    law = FormulaConstraint(list(case.laws), case.constants).bind(case.outputs, case.inputs) if case.laws else None
    predict_each = model(case)

    def predict(x: np.ndarray, y: np.ndarray) -> Prediction:
        free, cells = predict_each(x), cells_at(case, x, y)
        if cells is not None and not case.latent:
            known = ~np.isnan(cells)
            mean, variance = np.where(known, cells, free.mean), np.where(known, KNOWN * free.variance, free.variance)
            free = Gaussians(mean, variance)
        found = free if law is None else moved(law, free, x)
        sd = np.sqrt(found.variance)
        log_density = normal_log_density(y, found.mean, sd)
        return Prediction(found.mean, found.mean - NORMAL_95 * sd, found.mean + NORMAL_95 * sd, log_density)

    return predict


def moved(law: Law, free: Gaussians, x: np.ndarray) -> Gaussians:
    """f - V J^T (J V J^T)^-1 g, repeated; variances of the tangent."""
    f, V = free.mean.copy(), free.variance
    for _ in range(PROJECTION_STEPS):
        J = law.jacobian(f, x)
        gain = _gain(J, V)
        away = free.mean - f
        f = free.mean - np.einsum("ntr,nr->nt", gain, law.residual(f, x) + np.einsum("nrt,nt->nr", J, away))
    drop = np.einsum("ntr,nrt->nt", _gain(law.jacobian(f, x), V), law.jacobian(f, x) * V[:, None, :])
    return Gaussians(f, np.maximum(V - drop, 1e-4 * V))


def _gain(J: np.ndarray, V: np.ndarray) -> np.ndarray:
    """V J^T (J V J^T)^-1 (n, T, R)."""
    JV = J * V[:, None, :]
    return np.linalg.solve(JV @ J.transpose(0, 2, 1), JV).transpose(0, 2, 1)


def gaussian_processes(case: Case, smoothness: float = np.inf) -> Callable[[np.ndarray], Gaussians]:
    """scikit-learn: Matern (infinitely smooth: RBF) with a lengthscale for each input, white noise, each output alone."""
    D = len(case.inputs)
    x = case.x[:, :D]
    shift, size = x.min(axis=0), np.ptp(x, axis=0)
    models = []
    for column in case.y.T:
        seen = ~np.isnan(column)
        kernel = ConstantKernel(1.0) * Matern(np.full(D, 0.3), (1e-3, 1e2), smoothness) + WhiteKernel(0.1, (1e-8, 1e1))
        model = GaussianProcessRegressor(kernel, normalize_y=True, n_restarts_optimizer=2, random_state=0)
        models.append(model.fit((x[seen] - shift) / size, column[seen]))

    def predict(new: np.ndarray) -> Gaussians:
        parts = [m.predict((new[:, :D] - shift) / size, return_std=True) for m in models]
        noise = np.array([m.kernel_.k2.noise_level * m._y_train_std**2 for m in models])
        variance = np.stack([sd**2 for _, sd in parts], axis=1)
        latent = np.maximum(variance - noise, 1e-6 * variance) if case.latent else variance
        return Gaussians(np.stack([mean for mean, _ in parts], axis=1), latent)

    return predict


def splines(case: Case) -> Callable[[np.ndarray], Gaussians]:
    """A smoothing spline (one input) or thin-plate spline (several) for each output, variance from left-out rows."""
    D = len(case.inputs)
    x = case.x[:, :D]
    shift, size = x.min(axis=0), np.ptp(x, axis=0)
    models, variances = [], []
    for column in case.y.T:
        seen = ~np.isnan(column)
        fit = smoothing_spline if D == 1 else thin_plate
        model, variance = fit((x[seen] - shift) / size, column[seen])
        models.append(model)
        variances.append(max(variance, 1e-12 * float(np.var(column[seen])) + 1e-300))

    def predict(new: np.ndarray) -> Gaussians:
        mean = np.stack([m((new[:, :D] - shift) / size) for m in models], axis=1)
        return Gaussians(mean, np.broadcast_to(np.array(variances), mean.shape))

    return predict


Curve = Callable[[np.ndarray], np.ndarray]


def smoothing_spline(x: np.ndarray, y: np.ndarray) -> tuple[Curve, float]:
    """The spline whose smoothness generalised cross-validation chooses, and the mean square error of left-out folds."""
    if np.ptp(y) == 0 or len(y) < FEWEST_FOR_SPLINE + FOLDS:
        return (lambda z: np.full(len(z), y.mean())), float(y.var())
    spline = make_smoothing_spline(x[:, 0], y)
    errors = []
    for fold in range(FOLDS):
        out = np.arange(len(y)) % FOLDS == fold
        errors.append(make_smoothing_spline(x[~out, 0], y[~out])(x[out, 0]) - y[out])
    return (lambda z: spline(z[:, 0])), float(np.mean(np.concatenate(errors) ** 2))


def thin_plate(x: np.ndarray, y: np.ndarray) -> tuple[Curve, float]:
    """The thin-plate spline whose smoothing predicts left-out folds best, and its mean square error there."""
    folds = np.random.default_rng(0).permutation(len(y)) % FOLDS
    errors = []
    for smoothing in SMOOTHINGS:
        missed = [
            RBFInterpolator(x[folds != k], y[folds != k], smoothing=smoothing)(x[folds == k]) - y[folds == k]
            for k in range(FOLDS)
        ]
        errors.append(float(np.mean(np.concatenate(missed) ** 2)))
    best = int(np.argmin(errors))
    return RBFInterpolator(x, y, smoothing=SMOOTHINGS[best]), errors[best]


METHODS: dict[str, Callable[[Case], Predict]] = {
    "law": lambda case: fitted(case, law=True),
    "no law": lambda case: fitted(case, law=False),
    "scikit-learn": lambda case: independent(case, gaussian_processes),
    "spline": lambda case: independent(case, splines),
}
