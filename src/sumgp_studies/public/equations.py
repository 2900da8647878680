"""Sets with a differential equation: FitzHugh-Nagumo, and those of DAE-HardNet that have one input."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from sumgp_studies.public.case import Case, NoisyDraw, Part, noisy_draws
from sumgp_studies.public.system import System

REPLICATES = 10  # of the hundred data sets of FitzHugh-Nagumo
ROWS = 25
TEST_ROWS = 300
NOISES = (0.01, 0.03, 0.10)  # of each output's standard deviation
MISSING = 0.3  # share of entries
CYCLES = 50.0  # end of the times used of Lotka-Volterra: one and a half cycles, before the stored solution drifts
FITZHUGH_LAWS = ("d(V, t) = c*(V - V**3/3 + R)", "d(R, t) = -(V - a + b*R)/c")
LOTKA_LAWS = ("d(y1, x1) = 0.1*y1 - 0.02*y1*y2", "d(y2, x1) = -0.4*y2 + 0.02*y1*y2")
LINEAR_LAWS = ("d(y1, x1, 2) - y1 + 2*y2 = 0", "d(y2, x1, 2) - 2*y1 + 4*y2 = 1 - x1**2")
# Fast at first, slow at last: over s = log(1 + t) the curves vary alike everywhere, and rates are exp(s) = 1 + t times as
# large. That of R follows from the sum.
PROTEIN_LAWS = (
    "d(S, s) = exp(s)*(-k1*S - k2*S*R + k3*RS)",
    "d(Sd, s) = exp(s)*k1*S",
    "d(RS, s) = exp(s)*(k2*S*R - k3*RS - k4*RS)",
    "d(Rpp, s) = exp(s)*(k4*RS - Vm*Rpp/(Km + Rpp))",
    "R + RS + Rpp = 1",
)
PROTEIN_STATES = ("S", "Sd", "R", "RS", "Rpp")
PROTEIN_CONSTANTS = {"k1": 0.07, "k2": 0.6, "k3": 0.05, "k4": 0.3, "Vm": 0.017, "Km": 0.3}
CATALYSIS_LAWS = ("d(y1, x1) = -0.00588*4.6195*y1/(1 + 4.6195*y1)",)


def fitzhugh_rates(t: float, z: np.ndarray, constants: np.ndarray) -> np.ndarray:
    """Of V and R with constants a, b, c."""
    a, b, c = constants
    return np.array([c * (z[0] - z[0] ** 3 / 3 + z[1]), -(z[0] - a + b * z[1]) / c])


def lotka_rates(t: float, z: np.ndarray, constants: np.ndarray) -> np.ndarray:
    """Of prey and predators."""
    return np.array([0.1 * z[0] - 0.02 * z[0] * z[1], -0.4 * z[1] + 0.02 * z[0] * z[1]])


def linear_rates(t: float, z: np.ndarray, constants: np.ndarray) -> np.ndarray:
    """Of y1, y2 and their slopes."""
    return np.array([z[2], z[3], z[0] - 2 * z[1], 2 * z[0] - 4 * z[1] + 1 - t**2])


def catalysis_rates(t: float, z: np.ndarray, constants: np.ndarray) -> np.ndarray:
    """Of the reactant; the covered share of the surface follows from it."""
    return np.array([-0.00588 * 4.6195 * z[0] / (1 + 4.6195 * z[0])])


def protein_rates(s: float, z: np.ndarray, constants: np.ndarray) -> np.ndarray:
    """Of S, its degraded form, R, their complex and activated R, over s = log(1 + t)."""
    k1, k2, k3, k4, Vm, Km = constants
    S, _, R, RS, Rpp = z
    bound, back = k2 * S * R - k3 * RS, Vm * Rpp / (Km + Rpp)
    return np.exp(s) * np.array([-k1 * S - bound, k1 * S, -bound + back, bound - k4 * RS, k4 * RS - back])


def fitzhugh_nagumo(folder: Path) -> Iterator[Case]:
    """41 measurements of both states, noise .2, three unknown constants; scored against the true curves."""
    frame = pd.read_csv(folder / "fitzhugh_nagumo" / "fn_replicates.csv")
    truth = pd.read_csv(folder / "fitzhugh_nagumo" / "fn_truth.csv")
    parts = (Part("curve", truth[["time"]].to_numpy(float), truth[["V", "R"]].to_numpy(float)),)
    system = System(fitzhugh_rates, (0.2, 0.2, 3.0), (-1.0, 1.0), (0, 1), estimated=True)
    for number in frame["replicate"].unique()[:REPLICATES]:
        rows = frame[frame["replicate"] == number]
        x, y = rows[["time"]].to_numpy(float), rows[["V", "R"]].to_numpy(float)
        yield Case(
            "fitzhugh_nagumo", str(number), x, y, ("t",), ("V", "R"), (), parts, dict.fromkeys("abc", "unknown"),
            latent=True, sizes=np.ones(2), own_laws=FITZHUGH_LAWS, system=system,
        )  # fmt: skip


def protein_transduction(folder: Path) -> Iterator[Case]:
    """15 measurements of five states, noise .001 and .01, six unknown constants; scored against the true curves."""
    folder = folder / "fitzhugh_nagumo"
    truth = pd.read_csv(folder / "ptrans_truth.csv")
    system = System(protein_rates, tuple(PROTEIN_CONSTANTS.values()), (1.0, 0.0, 1.0, 0.0, 0.0), (0, 1, 2, 3, 4), True)
    x, y = np.log1p(truth[["time"]].to_numpy(float)), truth[list(PROTEIN_STATES)].to_numpy(float)
    for noise, level in ((0.001, "low"), (0.01, "high")):
        frame = pd.read_csv(folder / f"ptrans_replicates_{level}.csv")
        for number in frame["replicate"].unique()[:REPLICATES]:
            rows = frame[frame["replicate"] == number]
            yield Case(
                "protein_transduction", f"noise {noise} {number}", np.log1p(rows[["time"]].to_numpy(float)),
                rows[list(PROTEIN_STATES)].to_numpy(float), ("s",), PROTEIN_STATES, PROTEIN_LAWS[-1:],
                (Part(f"noise {noise}", x, y),), dict.fromkeys(PROTEIN_CONSTANTS, "unknown"), latent=True, sizes=np.ones(5),
                own_laws=PROTEIN_LAWS, bounds=("all >= 0",), system=system,
            )  # fmt: skip


def lotka_volterra(folder: Path) -> Iterator[Case]:
    """One and a half cycles of prey and predators; the law is the equation with its known constants."""
    system = System(lotka_rates, (), (10.0, 10.0), (0, 1))
    yield from _noisy(folder, "lotka_volterra", LOTKA_LAWS, system, (0.0, CYCLES))


def ode_system(folder: Path) -> Iterator[Case]:
    """Two coupled linear equations of second order with a known right side."""
    frame = pd.read_csv(folder / "dae" / "ode_system.csv").sort_values("x1")
    start = tuple(float(frame[name].iloc[0]) for name in ("y1", "y2", "d1y1dx1", "d1y2dx1"))
    yield from _noisy(folder, "ode_system", LINEAR_LAWS, System(linear_rates, (), start, (0, 1)), (-4.0, 4.0))


def catalysis(folder: Path) -> Iterator[Case]:
    """A reactant that is used up on a surface; the two algebraic states are inserted into its equation."""
    system = System(catalysis_rates, (), (1.0,), (0,))
    yield from _noisy(folder, "catalysis", CATALYSIS_LAWS, system, (0.0, 1000.0))


class DrawnRows(NamedTuple):
    """Positions of the rows to fit and of those to score, and what is measured (n, T) in the first."""

    fit: np.ndarray
    test: np.ndarray
    y: np.ndarray


def drawn_rows(truth: np.ndarray, count: int, drawn: NoisyDraw) -> DrawnRows:
    """``count`` rows of a stored solution (N, T) with noise in standard deviations of each output, and others to score."""
    chosen = drawn.generator.permutation(len(truth))
    fit, test = np.sort(chosen[:count]), np.sort(chosen[count : count + TEST_ROWS])
    y = truth[fit] + drawn.noise * truth.std(axis=0) * drawn.generator.standard_normal(truth[fit].shape)
    return DrawnRows(fit, test, y)


def _noisy(folder: Path, name: str, laws: tuple[str, ...], system: System, ends: tuple[float, float]) -> Iterator[Case]:
    """25 rows drawn from the stored solution, for each noise, 30 % of the entries lost; scored at 300 other times."""
    frame = pd.read_csv(folder / "dae" / f"{name}.csv").sort_values("x1")
    frame = frame[frame["x1"].between(*ends)]
    outputs = ("y1", "y2")[: len(system.shown)]
    x, truth = frame[["x1"]].to_numpy(float), frame[list(outputs)].to_numpy(float)
    sizes = truth.std(axis=0)
    for drawn in noisy_draws(NOISES, 26):
        fit, test, y = drawn_rows(truth, ROWS, drawn)
        y[drawn.generator.random(y.shape) < MISSING] = np.nan
        seen = ~np.isnan(y).all(axis=1)
        yield Case(
            name, drawn.label, x[fit][seen], y[seen], ("x1",), outputs, (),
            (Part(drawn.label, x[test], truth[test]),), latent=True, sizes=sizes, own_laws=laws, system=system,
        )  # fmt: skip
