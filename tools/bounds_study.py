"""What bounds do to predictions: the same fits with and without them, on simulated and on real data.

    python tools/bounds_study.py simulated [--datasets 24] [--first-seed 0] [--only NAME]
    python tools/bounds_study.py real FOLDER [--only NAME]

Prints a table: error, CRPS and CPU time with bounds divided by those without, coverage of 95 % intervals, and how many
means, interval ends and samples were outside. Bounds change predictions only, so that one fit serves both. FOLDER holds
the folders ``real`` (electricity_mix, foraminifera, soil_texture, epidemic) and ``compositions`` (jura, gemas_texture,
glacial_tills) with their CSV files.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from sumgp import Bounds, ConstrainedGP
from sumgp_studies.metrics import coverage, crps, rmse

TEST_POINTS = 100
SAMPLES = 20
# Logarithm of how much larger a share is at its height than between heights, halved, by the number of parts: without
# bounds 9 to 19 % of the means and 30 to 48 % of the lower ends are then negative.
CONTRASTS = {3: 3.5, 5: 3.0, 8: 2.6}
NAMES = "abcdefgh"


@dataclass(frozen=True)
class Case:
    """Data of one fit, and what it is scored against: true values, or measurements that were kept back."""

    law: str
    bounds: Bounds
    outputs: Sequence[str]
    x: np.ndarray
    y: np.ndarray
    x_test: np.ndarray
    truth: np.ndarray
    measured: bool = False


@dataclass(frozen=True)
class Scores:
    """With bounds and without: error, CRPS, coverage, CPU seconds of fit and prediction; and values outside."""

    ratios: np.ndarray  # rmse, crps, cpu
    coverages: np.ndarray  # without, with
    outside: int  # with bounds, of means, interval ends and samples
    outside_before: np.ndarray  # shares of means and of lower ends without bounds


def scored(case: Case) -> Scores:
    """Fit once, predict with bounds and without."""
    model = ConstrainedGP([case.law, case.bounds], outputs=list(case.outputs))
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(case.x, case.y)
        fitting = time.process_time() - start
        rows = []
        for bounded in (False, True):
            posterior = model.posterior(case.x_test)
            posterior = posterior if bounded else replace(posterior, bounding=None)
            start = time.process_time()
            mean, ends = posterior.mean, posterior.interval(0.95)
            cpu = fitting + time.process_time() - start
            judged = posterior.observed() if case.measured else posterior
            score = (rmse(mean, case.truth), crps(judged, case.truth), cpu)
            rows.append((score, coverage(*judged.interval(0.95), case.truth), mean, ends, posterior))
    limits = model.bounding_.bounds.limits(case.x_test)
    told = (rows[1][2], *rows[1][3], *rows[1][4].sample(SAMPLES))
    outside = [(values < limits.lower) | (values > limits.upper) for values in told]
    before = [np.mean((values < limits.lower) | (values > limits.upper)) for values in (rows[0][2], rows[0][3][0])]
    ratios = np.array(rows[1][0]) / np.array(rows[0][0])
    return Scores(ratios, np.array([rows[0][1], rows[1][1]]), int(np.sum(outside)), np.array(before))


def composition(parts: int, seed: int) -> Case:
    """Shares that come and go: exponentials of waves, most of them near zero at most places."""
    rng = np.random.default_rng([seed, parts])
    frequency, phase = rng.uniform(0.5, 1.3, parts), rng.uniform(0, 2 * np.pi, parts)

    def shares(t: np.ndarray) -> np.ndarray:
        raw = np.exp(CONTRASTS[parts] * np.sin(2 * np.pi * frequency * t[:, None] + phase))
        return raw / raw.sum(axis=1, keepdims=True)

    return _noisy(shares, " + ".join(NAMES[:parts]) + " = 1", NAMES[:parts], 25, 0.05, rng)


def kinetics(seed: int) -> Case:
    """A -> B -> C, concentrations that sum to one."""
    rng = np.random.default_rng([seed, 21])
    fast, slow = rng.uniform(4.0, 10.0), rng.uniform(1.5, 3.5)

    def concentrations(t: np.ndarray) -> np.ndarray:
        a = np.exp(-fast * t)
        b = fast / (slow - fast) * (np.exp(-fast * t) - np.exp(-slow * t))
        return np.stack([a, b, 1.0 - a - b], axis=1)

    return _noisy(concentrations, "a + b + c = 1", "abc", 20, 0.05, rng)


def damped(seed: int) -> Case:
    """Potential, kinetic and lost energy of a damped oscillator."""
    rng = np.random.default_rng([seed, 22])
    damping, frequency, phase = rng.uniform(1.0, 2.5), rng.uniform(5.0, 8.0), rng.uniform(0, np.pi)

    def energies(t: np.ndarray) -> np.ndarray:
        decay = np.exp(-damping * t)
        potential, kinetic = decay * np.cos(frequency * t + phase) ** 2, decay * np.sin(frequency * t + phase) ** 2
        return np.stack([potential, kinetic, 1.0 - decay], axis=1)

    return _noisy(energies, "a + b + c = 1", "abc", 25, 0.05, rng)


def half_circle(seed: int) -> Case:
    """A point on the half of a circle where a is not negative, often at its ends."""
    rng = np.random.default_rng([seed, 23])
    phase = rng.uniform(0, 2 * np.pi)

    def point(t: np.ndarray) -> np.ndarray:
        angle = np.pi * np.clip(0.5 + 0.55 * np.sin(2 * np.pi * t + phase), 0.0, 1.0)
        return np.stack([np.sin(angle), np.cos(angle)], axis=1)

    case = _noisy(point, "a**2 + b**2 = 1", "ab", 20, 0.1, rng)
    return replace(case, bounds=Bounds({"a": 0.0}))


def product(seed: int) -> Case:
    """a, b and their product c, none negative, a zero half of the time."""
    rng = np.random.default_rng([seed, 24])
    phase = rng.uniform(0, 1, 2)

    def values(t: np.ndarray) -> np.ndarray:
        a = np.maximum(np.sin(2 * np.pi * (t + phase[0])), 0.0) ** 1.5
        b = 0.5 + 0.5 * np.cos(3 * t + 6 * phase[1])
        return np.stack([a, b, a * b], axis=1)

    return _noisy(values, "a*b = c", "abc", 20, 0.07, rng)


def _noisy(function, law: str, outputs: Sequence[str], count: int, noise: float, rng: np.random.Generator) -> Case:
    t, test = np.sort(rng.uniform(0, 1, count)), np.linspace(0, 1, TEST_POINTS)
    y = function(t) + noise * rng.standard_normal((count, len(outputs)))
    return Case(law, Bounds(lower=0), outputs, t[:, None], y, test[:, None], function(test))


SIMULATED = {
    "3 parts": lambda seed: composition(3, seed),
    "5 parts": lambda seed: composition(5, seed),
    "8 parts": lambda seed: composition(8, seed),
    "kinetics": kinetics,
    "damped": damped,
    "half circle": half_circle,
    "product": product,
}


def real_cases(folder: Path) -> Iterator[tuple[str, Case]]:
    """Name and case of each real set, split into rows for fitting and rows kept back."""
    yield from _series(folder / "real")
    yield from _maps(folder / "real", folder / "compositions")
    tills = pd.read_csv(folder / "compositions" / "glacial_tills.csv")
    parts = tills.iloc[:, :4]
    good = (parts.sum(axis=1) - 100).abs() < 1.0  # the other rows are misprints
    parts = parts[good].div(parts[good].sum(axis=1), axis=0)
    for fold in range(3):
        yield "glacial tills", _fold(tills.loc[good, ["pebble_count"]], parts, 1.0, fold)


def _series(folder: Path) -> Iterator[tuple[str, Case]]:
    mix = pd.read_csv(folder / "electricity_mix" / "electricity_mix.csv")
    for country, table in mix.groupby("country"):
        parts = [c for c in table.columns[2:] if table[c].any()]
        for seed in (0, 1):
            yield f"electricity {country}", _split(table[["year"]], table[parts], 100.0, (0.5, 0.68), seed)
    fossils = pd.read_csv(folder / "foraminifera" / "foraminifera.csv")
    for seed in range(6):
        yield "foraminifera", _split(fossils.iloc[:, :1], fossils.iloc[:, 1:], 1.0, (0.55, 0.7), seed)
    epidemic = pd.read_csv(folder / "epidemic" / "epidemic.csv")
    for seed in range(3):
        some = epidemic.iloc[seed::4]
        shares = some[["active", "recovered", "deaths"]].div(some["confirmed"], axis=0)
        yield "epidemic, shares", _split(some[["day"]], shares, 1.0, (0.5, 0.65), seed)


def _maps(folder: Path, compositions: Path) -> Iterator[tuple[str, Case]]:
    texture = ["sand", "silt", "clay"]
    soil = pd.read_csv(folder / "soil_texture" / "soil_texture.csv")
    soil = soil[(soil.x_km - 4615.275).abs().ge(250) | (soil.y_km - 3050.194).abs().ge(250)]
    for seed in (0, 1):
        order = np.random.default_rng(seed).permutation(len(soil))
        yield "soil", _case(soil[["x_km", "y_km"]], soil[texture], 100.0, order[200:600], order[:200])
    jura = pd.read_csv(compositions / "jura.csv")
    metals = jura[["Cd", "Cu", "Pb", "Co", "Cr", "Ni", "Zn"]]
    kept = [np.flatnonzero(jura.validation == value) for value in (0, 1)]
    yield "jura, shares", _case(jura[["X", "Y"]], metals.div(metals.sum(axis=1), axis=0), 1.0, *kept)
    farms = pd.read_csv(compositions / "gemas_texture.csv").dropna(subset=texture)
    yield "farm soils", _fold(farms[["Xcoord", "Ycoord"]], farms[texture], 100.0, 0)


def _case(x: pd.DataFrame, y: pd.DataFrame, total: float, fit: np.ndarray, test: np.ndarray) -> Case:
    law = " + ".join(f"`{name}`" for name in y.columns) + f" = {total:g}"
    X, Y = x.to_numpy(float), y.to_numpy(float)
    return Case(law, Bounds(lower=0), list(y.columns), X[fit], Y[fit], X[test], Y[test], measured=True)


def _fold(x: pd.DataFrame, y: pd.DataFrame, total: float, fold: int) -> Case:
    """One of ten folds."""
    order = np.random.default_rng(0).permutation(len(x))
    kept = np.arange(len(x)) % 10 == fold
    return _case(x, y, total, order[~kept], order[kept])


def _split(x: pd.DataFrame, y: pd.DataFrame, total: float, gap: tuple[float, float], seed: int) -> Case:
    """Rows of a gap and a fifth of the others, drawn at random, are kept back."""
    n = len(x)
    held = np.zeros(n, dtype=bool)
    held[int(gap[0] * n) : int(gap[1] * n)] = True
    others = np.flatnonzero(~held)[1:-1]
    held[np.random.default_rng(seed).choice(others, int(0.2 * n), replace=False)] = True
    return _case(x, y, total, np.flatnonzero(~held), np.flatnonzero(held))


def line(name: str, scores: Sequence[Scores]) -> str:
    """A line of the table: means over the data sets, and the largest ratio of the errors."""
    ratios, coverages = np.array([s.ratios for s in scores]), np.array([s.coverages for s in scores]).mean(axis=0)
    error, probability, cpu = ratios.mean(axis=0)
    before = np.array([s.outside_before for s in scores]).mean(axis=0)
    cells = [name, len(scores), f"{before[0]:.0%}, {before[1]:.0%}", sum(s.outside for s in scores)]
    cells += [f"{error:.3f}", f"{probability:.3f}", f"{coverages[0]:.3f}", f"{coverages[1]:.3f}", f"{cpu:.2f}"]
    return "| " + " | ".join(map(str, cells)) + f" | {ratios[:, 0].max():.3f} | {ratios[:, 1].max():.3f} |"


HEAD = (
    "| set | fits | outside without (means, lower ends) | outside with | RMSE | CRPS | coverage without | with | CPU "
    "| worst RMSE | worst CRPS |"
)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=["simulated", "real"])
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--datasets", type=int, default=24)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    print(HEAD + "\n" + "|---" * 11 + "|", flush=True)
    if given.kind == "simulated":
        for name, make in SIMULATED.items():
            if given.only in name:
                seeds = range(given.first_seed, given.first_seed + given.datasets)
                print(line(name, [scored(make(seed)) for seed in seeds]), flush=True)
        return
    found: dict[str, list[Scores]] = {}
    for name, case in real_cases(given.folder):
        if given.only in name:
            found.setdefault(name, []).append(scored(case))
    for name, scores in found.items():
        print(line(name, scores), flush=True)


if __name__ == "__main__":
    main()
