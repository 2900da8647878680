"""The ten development sets as cases: a loader for each, which follows the note beside the data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from sumgp_studies.public.case import Case, Part, gap_and_random

MARS_MU = 2.959123037810780e-04
MARS_ENERGY = -9.710461887661e-05
MARS_MOMENTUM = (5.188027307787e-04, -8.811237306948e-03, 1.921032082570e-02)
SOIL_CENTRE = (4615.275, 3050.194)  # km


def table(folder: Path, name: str) -> pd.DataFrame:
    """The table of a set."""
    return pd.read_csv(folder / name / f"{name}.csv")


def by_rows(frame: pd.DataFrame, case: Case, gap: tuple[float, float], seed: int) -> Case:
    """The case with rows left out whole, in a gap and at random; ``frame`` holds its inputs and outputs."""
    x = frame[[*case.inputs, *case.extra]].to_numpy(float)
    y = frame[list(case.outputs)].to_numpy(float)
    fit, inside, drawn = gap_and_random(len(x), gap, seed)
    parts = (Part("gap", x[inside], y[inside]), Part("random", x[drawn], y[drawn]))
    return replace(case, x=x[fit], y=y[fit], parts=parts)


def empty(set_name: str, label: str, inputs: str, outputs: list[str], laws: tuple[str, ...]) -> Case:
    """A case without rows."""
    none = np.zeros((0, 0))
    return Case(set_name, label, none, none, (inputs,), tuple(outputs), laws, ())


def with_cells(frame: pd.DataFrame, case: Case, missing: list[str]) -> Case:
    """A second task: the random rows are there for fitting but for the outputs ``missing``; whole gap rows stay out."""
    drawn = case.parts[1]
    hidden = np.array([name in missing for name in case.outputs])
    x = np.vstack([case.x, drawn.x])
    y = np.vstack([case.y, np.where(hidden, np.nan, drawn.y)])
    order = np.argsort(x[:, 0], kind="stable")
    cells = Part("cells", drawn.x, np.where(hidden, drawn.y, np.nan))
    return replace(case, label=f"{case.label} cells", x=x[order], y=y[order], parts=(cells,))


def electricity_mix(folder: Path) -> Iterator[Case]:
    """Shares of sources, country by country."""
    frame = table(folder, "electricity_mix")
    for country, rows in frame.groupby("country", sort=True):
        outputs = [c for c in frame.columns[2:] if (rows[c] != 0).any()]
        case = empty("electricity_mix", str(country), "year", outputs, (" + ".join(outputs) + " = 100",))
        for seed in (0, 1):
            yield by_rows(rows, replace(case, label=f"{country} {seed}"), (0.50, 0.68), seed)


def epidemic(folder: Path) -> Iterator[Case]:
    """Every fourth third-day of the world's totals."""
    frame = table(folder, "epidemic")
    law = ("active + recovered + deaths = total",)
    for seed in (0, 1, 2):
        case = empty("epidemic", str(seed), "day", ["active", "recovered", "deaths"], law)
        case = replace(case, extra=("confirmed",), constants={"total": "confirmed"})
        yield by_rows(frame.iloc[seed::4], case, (0.50, 0.65), seed)


def foraminifera(folder: Path) -> Iterator[Case]:
    """Shares of four species over depth."""
    frame = table(folder, "foraminifera")
    outputs = list(frame.columns[1:])
    for seed in range(6):
        case = empty("foraminifera", str(seed), "depth_index", outputs, (" + ".join(outputs) + " = 1",))
        yield by_rows(frame, case, (0.55, 0.70), seed)


def gb_power(folder: Path) -> Iterator[Case]:
    """The small variant: every sixth row."""
    frame = table(folder, "gb_power")
    outputs = list(frame.columns[2:])
    place = np.arange(len(frame))
    gap = ((place % 500) < 72) & (place >= 500) & (place < 1572)
    drawn = (np.random.default_rng(0).random(len(frame)) < 0.1) & ~gap
    few = place % 6 == 0
    frame, gap, drawn = frame[few], gap[few], drawn[few]
    x, y = frame[["hours", "total"]].to_numpy(float), frame[outputs].to_numpy(float)
    case = empty("gb_power", "rows", "hours", outputs, (" + ".join(outputs) + " = all_of_it",))
    case = replace(case, extra=("total",), constants={"all_of_it": "total"})
    out = gap | drawn
    removed = np.array([name in ("ccgt", "wind") for name in outputs])
    scored = np.where(removed, y, np.nan)
    parts = (Part("gap", x[gap], scored[gap]), Part("random", x[drawn], scored[drawn]))
    yield replace(case, x=x[~out], y=y[~out], parts=parts)
    cells = (replace(parts[0], name="gap cells"), replace(parts[1], name="cells"))
    yield replace(case, label="cells", x=x, y=np.where(out[:, None] & removed, np.nan, y), parts=cells)


def mars(folder: Path) -> Iterator[Case]:
    """Position and velocity, with the energy law alone and with angular momentum."""
    frame = table(folder, "mars")
    t, outputs = frame["t"].to_numpy(float), list(frame.columns[1:])
    truth = frame[outputs].to_numpy(float)
    sizes = np.repeat([np.sqrt(np.mean(truth[:, k : k + 3].var(axis=0))) for k in (0, 3)], 3)
    energy = "(vx**2 + vy**2 + vz**2)/2 - mu/sqrt(x**2 + y**2 + z**2) = E"
    momentum = ("y*vz - z*vy = hx", "z*vx - x*vz = hy", "x*vy - y*vx = hz")
    constants = {"mu": MARS_MU, "E": MARS_ENERGY}
    more = constants | dict(zip(("hx", "hy", "hz"), MARS_MOMENTUM, strict=True))
    inside = (t >= 400) & (t <= 520)
    fit = (np.arange(len(t)) % 4 == 0) & ~inside
    for seed in (0, 1, 2):
        generator = np.random.default_rng(seed)
        y = (truth + 0.03 * sizes * generator.standard_normal(truth.shape))[fit]
        y[generator.random(int(fit.sum())) < 0.33, 3:] = np.nan
        x = t[:, None]
        parts = (Part("between", x[~fit & ~inside], truth[~fit & ~inside]), Part("gap", x[inside], truth[inside]))
        case = Case("mars", str(seed), x[fit], y, ("t",), tuple(outputs), (energy,), parts, constants, latent=True)
        case = replace(case, sizes=sizes, groups=(("x", "y", "z"), ("vx", "vy", "vz")))
        yield case
        yield replace(case, label=f"{seed} four laws", laws=(energy, *momentum), constants=more)


def meadow_energy(folder: Path) -> Iterator[Case]:
    """A budget that closes only up to an imbalance."""
    frame = table(folder, "meadow_energy")
    day, outputs = frame["day"].to_numpy(float), ["Rn", "H", "LE", "G"]
    drawn = np.random.default_rng(0).random(len(frame)) < 0.3
    used = (day >= 185) & (day < 197)
    drawn, day, values = drawn[used], day[used], frame[outputs].to_numpy(float)[used]
    gap = (day >= 190) & (day < 191.5)
    hidden = np.zeros(values.shape, dtype=bool)
    hidden[drawn, 2] = True
    hidden[gap, 1:3] = True
    alone = drawn & ~gap
    scored = np.where(hidden, values, np.nan)
    parts = (Part("gap cells", day[gap, None], scored[gap]), Part("cells", day[alone, None], scored[alone]))
    # The budget closes only up to an error, which our fit estimates; others are moved onto the closed one.
    case = empty("meadow_energy", "0", "day", outputs, ("Rn = H + LE + G",))
    case = replace(case, own_laws=("Rn = H + LE + G +- unknown",))
    yield replace(case, x=day[:, None], y=np.where(hidden, np.nan, values), parts=parts)


def mocap_limbs(folder: Path) -> Iterator[Case]:
    """Four joints, three bones; one joint hidden for a while."""
    frame = table(folder, "mocap_limbs")
    outputs = tuple(frame.columns[2:])
    laws = [f"norm({a}, {b}) = L{k}" for k, (a, b) in enumerate((("a", "b"), ("b", "c"), ("c", "d")))]
    for clip, rows in frame.groupby("clip", sort=True):
        truth, t = rows[list(outputs)].to_numpy(float), rows[["t"]].to_numpy(float)
        bones = np.diff(truth.reshape(-1, 4, 3), axis=1)
        lengths = np.linalg.norm(bones, axis=2).mean(axis=0)
        frames = np.arange(len(t))
        fit, hidden = frames % 2 == 0, (frames > 0.45 * len(t)) & (frames < 0.60 * len(t))
        constants = {f"L{k}": float(v) for k, v in enumerate(lengths)}
        for seed in (0, 1):
            y = truth[fit] + 0.25 * np.random.default_rng(seed).standard_normal(truth[fit].shape)
            y[hidden[fit], 3:6] = np.nan
            parts = tuple(
                Part(name, t[chosen], truth[chosen])
                for name, chosen in (("between", ~fit & ~hidden), ("gap", ~fit & hidden))
            )
            case = Case("mocap_limbs", f"{clip} {seed}", t[fit], y, ("t",), outputs, tuple(laws), parts, constants)
            yield replace(case, latent=True, sizes=np.ones(12), groups=(outputs,))


def national_accounts(folder: Path) -> Iterator[Case]:
    """Shares of spending, country by country; whole rows and single cells hidden."""
    frame = table(folder, "national_accounts")
    outputs = list(frame.columns[2:])
    for country, rows in frame.groupby("country", sort=True):
        for seed in (0, 1):
            label = f"{country} {seed}"
            case = empty("national_accounts", label, "year", outputs, (" + ".join(outputs) + " = 100",))
            whole = by_rows(rows, case, (0.55, 0.68), seed)
            yield whole
            yield with_cells(rows, whole, ["investment", "residual"])


def soil_texture(folder: Path) -> Iterator[Case]:
    """Sand, silt and clay at 400 places; a square of 500 km and 200 places are scored."""
    frame = table(folder, "soil_texture")
    x, y = frame[["x_km", "y_km"]].to_numpy(float), frame[["sand", "silt", "clay"]].to_numpy(float)
    gap = np.all(np.abs(x - SOIL_CENTRE) < 250, axis=1)
    for seed in (0, 1):
        generator = np.random.default_rng(seed)
        others = np.flatnonzero(~gap)
        drawn = generator.choice(others, 200, replace=False)
        fit = generator.choice(np.setdiff1d(others, drawn), 400, replace=False)
        parts = (Part("gap", x[gap], y[gap]), Part("random", x[drawn], y[drawn]))
        law = ("sand + silt + clay = 100",)
        yield Case("soil_texture", str(seed), x[fit], y[fit], ("x_km", "y_km"), ("sand", "silt", "clay"), law, parts)


def tourism(folder: Path) -> Iterator[Case]:
    """Thirty-six quarters with two sums."""
    frame = table(folder, "tourism")
    outputs = list(frame.columns[1:])
    laws = ("total = hol + vfr + bus + oth", "hol = " + " + ".join(outputs[5:]))
    for seed in range(4):
        whole = by_rows(frame, empty("tourism", str(seed), "quarter", outputs, laws), (0.50, 0.62), seed)
        yield whole
        yield with_cells(frame, whole, ["vfr", "oth", "wa_hol", "nt_hol"])


SETS: dict[str, Callable[[Path], Iterator[Case]]] = {
    loader.__name__: loader
    for loader in (
        electricity_mix,
        epidemic,
        foraminifera,
        gb_power,
        mars,
        meadow_energy,
        mocap_limbs,
        national_accounts,
        soil_texture,
        tourism,
    )
}


def cases(folder: Path, names: list[str]) -> Iterator[Case]:
    """Cases of the named sets; ``folder`` holds a folder for each."""
    for name in names:
        yield from SETS[name](folder)
