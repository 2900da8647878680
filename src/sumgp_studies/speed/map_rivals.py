"""Sections on maps beside other methods: GPBoost's Vecchia, thin-plate splines, and the published satellite table."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr

from sumgp.estimator import ConstrainedGP
from sumgp.solvers import Vecchia
from sumgp_studies.public import Case, Gaussians, Part, gemas_gap, independent, sets_named, splines
from sumgp_studies.speed.maps import NOISE, PREDICTED, random_field
from sumgp_studies.speed.timing import Bar, Section

NORMAL_95 = 1.96
RIVAL_ROWS = 20_000
CPU_BAR, ERROR_BAR = 0.6, 1.0
MAP_ERROR_BAR = 1.01
NOMINAL, COVERAGE_BAR, GAP_COVERAGE = 0.95, 0.02, 0.90
MAPS = ("soil_texture", "gemas", "jura")
NNGP = "NNGP"  # how the rows of the published table begin that are to be reached


def has_gpboost() -> bool:
    """True if GPBoost is installed (the extra "bench")."""
    return find_spec("gpboost") is not None


GPBoost = Callable[[np.ndarray, bool], tuple[np.ndarray, np.ndarray]]


def gpboost_process(x: np.ndarray, y: np.ndarray) -> GPBoost:
    """GPBoost as its documentation says for large data, Matern 3/2 by Vecchia.

    The function gives means and variances at points, of measurements if its second argument is true.
    """
    import gpboost

    model = gpboost.GPModel(
        gp_coords=x, cov_function="matern", cov_fct_shape=1.5, gp_approx="vecchia", likelihood="gaussian"
    )
    model.fit(y=np.ascontiguousarray(y), X=np.ones((len(y), 1)))  # a column of a table is read wrongly there

    def predict(new: np.ndarray, measured: bool) -> tuple[np.ndarray, np.ndarray]:
        found = model.predict(gp_coords_pred=new, X_pred=np.ones((len(new), 1)), predict_var=True, predict_response=measured)
        return found["mu"], found["var"]

    return predict


def gpboost_processes(case: Case) -> Callable[[np.ndarray], Gaussians]:
    """Each output alone."""
    D = len(case.inputs)
    shift, size = case.x[:, :D].min(axis=0), np.ptp(case.x[:, :D], axis=0).max()
    each = [gpboost_process((case.x[:, :D] - shift) / size, column) for column in case.y.T]

    def predict(new: np.ndarray) -> Gaussians:
        parts = [model((new[:, :D] - shift) / size, not case.latent) for model in each]
        return Gaussians(np.stack([m for m, _ in parts], axis=1), np.stack([v for _, v in parts], axis=1))

    return predict


def gpboost_section(rows: int = RIVAL_ROWS) -> Section:
    """One output, hyperparameters included, beside GPBoost with its defaults."""
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(rows + rows // PREDICTED, 2))
    f = random_field(x, rng)
    y = f + NOISE * rng.standard_normal(len(f))
    runs = {"sumgp": _ours} | ({"GPBoost": _gpboost} if has_gpboost() else {})
    found = {name: run(x, y, rows) for name, run in runs.items()}
    errors = {name: float(np.sqrt(np.mean((mean - f[rows:]) ** 2))) for name, (_, _, mean, _) in found.items()}
    table = []
    for name, (fit, total, mean, sd) in found.items():
        inside = np.abs(mean - f[rows:]) <= NORMAL_95 * sd
        table.append((name, f"{fit:.2f}", f"{total:.2f}", f"{errors[name]:.4f}", f"{inside.mean():.3f}"))
    bars: tuple[Bar, ...] = ()
    if "GPBoost" in found:
        bars = (
            Bar(f"map of {rows:,} x 1: whole fit / GPBoost's", CPU_BAR, found["sumgp"][0] / found["GPBoost"][0]),
            Bar("its error / GPBoost's", ERROR_BAR, errors["sumgp"] / errors["GPBoost"]),
        )
    note = f"A Matern 3/2 field with noise of sd {NOISE}, {rows:,} rows, {rows // PREDICTED:,} points predicted."
    columns = ("", "fit, CPU [s]", "and predict [s]", "error", "coverage")
    return Section("A map of one output beside GPBoost", note, columns, tuple(table), bars)


def _ours(x: np.ndarray, y: np.ndarray, rows: int) -> tuple[float, float, np.ndarray, np.ndarray]:
    start = time.process_time()
    gp = ConstrainedGP(solver=Vecchia()).fit(x[:rows], y[:rows, None])
    fitted = time.process_time()
    posterior = gp.posterior(x[rows:])
    mean, sd = posterior.mean[:, 0], posterior.std[:, 0]
    return fitted - start, time.process_time() - start, mean, sd


def _gpboost(x: np.ndarray, y: np.ndarray, rows: int) -> tuple[float, float, np.ndarray, np.ndarray]:
    start = time.process_time()
    predict = gpboost_process(x[:rows], y[:rows])
    fitted = time.process_time()
    mean, variance = predict(x[rows:], False)
    return fitted - start, time.process_time() - start, mean, np.sqrt(variance)


def compositions_section(folder: Path) -> Section:
    """Texture and metals: errors beside thin-plate splines and GPBoost, each moved onto the law."""
    rivals = {"thin-plate": splines} | ({"GPBoost": gpboost_processes} if has_gpboost() else {})
    sums: dict[tuple[str, str], dict[str, list[float]]] = {}
    loaders = [*(entry.load for entry in sets_named(list(MAPS))), gemas_gap]
    for case in (case for load in loaders for case in load(folder)):
        for name, predict in _methods(case, rivals):
            for part in case.parts:
                mean, inside, residual = predict(part)
                record = sums.setdefault((case.set_name, part.name), {})
                record.setdefault(name, []).append(float(np.mean((mean - part.y) ** 2)))
                if name == "sumgp":
                    record.setdefault("coverage", []).append(inside)
                    record.setdefault("residual", []).append(residual)
    rows: list[tuple[str, ...]] = []
    bars: list[Bar] = []
    for (name, place), record in sums.items():
        error = {k: float(np.sqrt(np.mean(record[k]))) for k in ("sumgp", *rivals)}
        coverage, residual = float(np.mean(record["coverage"])), max(record["residual"])
        shown = [f"{error[k]:.3f}" for k in error] + [f"{coverage:.3f}", f"{residual:.0e}"]
        rows.append((name, place, str(len(record["coverage"])), *shown))
        bars += [Bar(f"{name}, {place}: error / {rival}", MAP_ERROR_BAR, error["sumgp"] / error[rival]) for rival in rivals]
        outside = (
            Bar(f"{name}, {place}: outside the 95 % intervals", 1.0 - GAP_COVERAGE, 1.0 - coverage, "")
            if place.startswith("gap")
            else Bar(f"{name}, {place}: coverage away from 95 %", COVERAGE_BAR, abs(coverage - NOMINAL), "")
        )
        bars += [outside, Bar(f"{name}, {place}: law residual / total", 1e-12, residual, "")]
    columns = ("set", "part", "draws", "sumgp", *rivals, "coverage", "law residual")
    note = "Errors: root mean square over outputs and rows, of measurements, in per cent; rivals are moved onto the law."
    return Section("Composition maps", note, columns, tuple(rows), tuple(bars))


def _methods(case: Case, rivals: dict[str, Any]) -> Iterator[tuple[str, Callable[[Part], tuple[np.ndarray, float, float]]]]:
    gp = ConstrainedGP(list(case.laws), outputs=list(case.outputs), solver=Vecchia()).fit(case.x, case.y)

    def ours(part: Part) -> tuple[np.ndarray, float, float]:
        posterior = gp.posterior(part.x)
        lower, upper = posterior.observed().interval()
        residual = float(np.max(np.abs(posterior.residual()))) / float(np.median(case.y.sum(axis=1)))
        return posterior.mean, float(np.mean((lower <= part.y) & (part.y <= upper))), residual

    yield "sumgp", ours
    for name, model in rivals.items():
        yield name, partial(_rival, independent(case, model))


def _rival(predict: Callable[[np.ndarray, np.ndarray], Any], part: Part) -> tuple[np.ndarray, float, float]:
    """A rival's means; its intervals are not compared, and its law holds by projection."""
    return predict(part.x, part.y).mean, np.nan, np.nan


def satellite_section(folder: Path, step: int = 1) -> Section:
    """Land-surface temperature: the published protocol; ``step`` above one takes every so many rows and columns."""
    x, values, split = _satellite(folder, step)
    train, test = split == 1, split == 2
    start = time.process_time()
    gp = ConstrainedGP(solver=Vecchia()).fit(x[train], values[train, None])
    seen = gp.posterior(x[test]).observed()
    mean, sd = seen.mean[:, 0], seen.std[:, 0]
    minutes = (time.process_time() - start) / 60.0
    scores = _scores(mean, sd, values[test])
    published = pd.read_csv(folder / "spatial" / "published_satellite.csv")
    rows = [("sumgp", *(f"{scores[k]:.3f}" for k in scores), f"{minutes:.2f}", "1")]
    rows += [tuple(str(value) for value in row) for row in published.to_numpy()]
    bars: tuple[Bar, ...] = ()
    if step == 1:
        others = published[published["method"].str.startswith(NNGP)]
        bars = tuple(
            Bar(f"satellite: {name.upper()} beside {method}", float(value), scores[name], "C")
            for name in ("rmse", "crps")
            for method, value in zip(others["method"], others[name], strict=True)
        )
    note = f"{train.sum():,} cells to fit, {test.sum():,} to predict" + (
        ", coarser grid: not comparable" if step > 1 else ""
    )
    columns = ("method", "MAE", "RMSE", "CRPS", "INT", "CVG", "minutes", "cores")
    kernel = gp.fit_report_["kernel"]
    return Section("Satellite temperatures", f"{note}; kernel chosen: {kernel}.", columns, tuple(rows), bars)


def _satellite(folder: Path, step: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Places (n, 2), temperatures (n,) and the split (n,)."""
    table = pd.read_csv(folder / "spatial" / "satellite.csv", index_col=0).iloc[::step, ::step]
    split = pd.read_csv(folder / "spatial" / "split.csv", index_col=0).iloc[::step, ::step]
    latitude, longitude = np.meshgrid(table.index.to_numpy(float), table.columns.to_numpy(float), indexing="ij")
    x = np.column_stack([longitude.ravel(), latitude.ravel()])
    return x, table.to_numpy(float).ravel(), split.to_numpy(int).ravel()


def _scores(mean: np.ndarray, sd: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """As in the published protocol, for Gaussian predictions of measurements."""
    z = (y - mean) / sd
    density = np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi)
    crps = sd * (z * (2.0 * ndtr(z) - 1.0) + 2.0 * density - 1.0 / np.sqrt(np.pi))
    beyond = np.maximum(np.abs(y - mean) - NORMAL_95 * sd, 0.0)
    return {
        "mae": float(np.mean(np.abs(y - mean))),
        "rmse": float(np.sqrt(np.mean((y - mean) ** 2))),
        "crps": float(np.mean(crps)),
        "int": float(np.mean(2.0 * NORMAL_95 * sd + 40.0 * beyond)),
        "cvg": float(np.mean(beyond == 0)),
    }
