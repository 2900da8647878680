"""Does a law ever make the answer worse? Recordings of bodies, and families of smooth problems.

    python tools/never_worse.py bodies [--datasets 50] [--first-seed 0] [--jobs 2] [--integrated]

Windows of the double pendulum with three sets of laws, and a swinging skeleton: prints for each the mean error without the
law, with each point moved onto it, and with it imposed, and the largest law residual. Recordings of the real pendulum are
read from SUMGP_DATA_DIR; without them the pendulum is simulated.

    python tools/never_worse.py families [--datasets 20] [--first-seed 0] [--jobs 1] [--quick] [--only NAME] [--page FILE]

The families of tools/families: fits with the law and without. Each problem is a line of JSON in --records, and problems
that are there already are not fitted again. Prints the page docs/never-worse.md, or writes it to --page.
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

import sumgp
from families import FAMILIES
from families.records import completed
from families.table import page
from sumgp.laws import AllOf, Constraint, FunctionConstraint
from sumgp_studies.experiments.double_pendulum import POSITIONS, VELOCITIES, DoublePendulum, arm_lengths
from sumgp_studies.experiments.pendulum_data import find_recordings

BONES = np.array([0.5, 0.4, 0.3])  # metres
CAMERA_NOISE = 0.02
STRATEGIES = {"no law": sumgp.Unconstrained(), "projected": sumgp.Projected(), "linearized": sumgp.Linearized()}
OUTPUTS = [*POSITIONS, *VELOCITIES, "f8", "f9", "f10", "f11"]
QUICK_STRIDE = 6  # every sixth family in a quick run
LAWS = ("energy", "arms", "energy + arms + velocities")


@dataclass(frozen=True)
class Case:
    """One data set with its law."""

    x: np.ndarray
    y: np.ndarray
    x_test: np.ndarray
    truth: np.ndarray
    law: Constraint
    groups: list[list[int]]


def bones() -> Constraint:
    """Three fixed lengths in a chain of four joints in space, outputs ordered joint by joint."""

    def between(f: np.ndarray) -> np.ndarray:
        return np.diff(f.reshape(len(f), 4, 3), axis=1)

    def residual(f: np.ndarray, x: np.ndarray) -> np.ndarray:
        return np.linalg.norm(between(f), axis=2) - BONES

    def jacobian(f: np.ndarray, x: np.ndarray) -> np.ndarray:
        along = between(f)
        along = along / np.linalg.norm(along, axis=2, keepdims=True)
        slopes = np.zeros((len(f), 3, 12))
        for bone in range(3):
            slopes[:, bone, 3 * bone : 3 * bone + 3] = -along[:, bone]
            slopes[:, bone, 3 * bone + 3 : 3 * bone + 6] = along[:, bone]
        return slopes

    return FunctionConstraint(residual, jacobian, rows=3, label="bones")


def skeleton(seed: int) -> Case:
    """A chain of four joints that swings irregularly: 30 noisy frames in three seconds."""
    generator = np.random.default_rng([seed, 99])
    phase = generator.uniform(0.0, 2.0 * np.pi, 15)

    def joints(t: np.ndarray) -> np.ndarray:
        ends = [
            np.stack([0.3 * np.sin(1.1 * t + phase[0]), 0.2 * np.cos(0.9 * t + phase[1]), 0.1 * np.sin(1.7 * t)], axis=1)
        ]
        for j, length in enumerate(BONES):
            tilt = 1.2 * np.sin((1.5 + 0.7 * j) * t + phase[3 + 2 * j]) + 0.5 * np.sin((3.1 + j) * t + phase[4 + 2 * j])
            turn = 0.9 * np.cos((1.2 + 0.5 * j) * t + phase[9 + j]) + 0.4 * np.sin(2.7 * t + phase[12 + j])
            along = np.stack([np.sin(tilt) * np.cos(turn), np.sin(tilt) * np.sin(turn), -np.cos(tilt)], axis=1)
            ends.append(ends[-1] + length * along)
        return np.hstack(ends)

    t, t_test = np.linspace(0.0, 3.0, 30), np.linspace(0.0, 3.0, 120)
    y = joints(t) + CAMERA_NOISE * generator.standard_normal((30, 12))
    return Case(t[:, None], y, t_test[:, None], joints(t_test), bones(), [list(range(12))])


def window(seed: int, laws: str) -> Case:
    """15 of 200 frames of the double pendulum."""
    pendulum = DoublePendulum(find_recordings())
    data = pendulum.dataset(pendulum.cells[0], seed)
    arms = data.further_constraint
    if laws == "energy":
        law: Constraint = data.constraint
    elif laws == "arms":
        law = FunctionConstraint(_lengths_of(arm_lengths(data.Y_train)), rows=2, label="arms")
    else:
        law = AllOf([data.constraint, arms])
    return Case(data.X_train, data.Y_train, data.X_test, data.F_test, law, [[0, 1, 2, 3], [4, 5, 6, 7]])


def _lengths_of(lengths: tuple[float, float]) -> Any:
    def residual(f: np.ndarray, x: np.ndarray) -> np.ndarray:
        arms = np.diff(f[:, :4].reshape(-1, 2, 2), axis=1, prepend=0.0)
        return np.linalg.norm(arms, axis=2) - np.asarray(lengths)

    return residual


def scores(problem: str, seed: int, uncertainty: str) -> dict[str, tuple[float, float, str]]:
    """Per strategy: root mean square error, largest residual of the law, the taper chosen."""
    case = skeleton(seed) if problem == "skeleton" else window(seed, problem)
    names = OUTPUTS[: case.y.shape[1]]
    result = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, strategy in STRATEGIES.items():
            gp = sumgp.ConstrainedGP(
                case.law, outputs=names, strategy=strategy, uncertainty=uncertainty, groups=case.groups
            ).fit(case.x, case.y)
            posterior = gp.posterior(case.x_test)
            error = float(np.sqrt(np.mean((posterior.mean - case.truth) ** 2)))
            residual = 0.0 if name == "no law" else float(np.max(np.abs(posterior.residual())))
            result[name] = (error, residual, str(gp.fit_report_.details.get("taper", "")))
    return result


def bodies(chosen: argparse.Namespace) -> None:
    """Run the pendulum and the skeleton and print their table."""
    seeds = range(chosen.first_seed, chosen.first_seed + chosen.datasets)
    uncertainty = "integrated" if chosen.integrated else "plug-in"
    print(f"{'problem':28s} {'no law':>9s} {'projected':>9s} {'linearized':>10s}  law residual  tapers chosen")
    for problem in (*LAWS, "skeleton"):
        rows = Parallel(chosen.jobs)(delayed(scores)(problem, seed, uncertainty) for seed in seeds)
        mean = {name: np.mean([row[name][0] for row in rows]) for name in STRATEGIES}
        worst = max(row["linearized"][1] for row in rows)
        tapers = [row["linearized"][2] for row in rows]
        counted = ", ".join(f"{t}: {tapers.count(t)}" for t in sorted(set(tapers)))
        errors = f"{mean['no law']:9.5f} {mean['projected']:9.5f} {mean['linearized']:10.5f}"
        print(f"{problem:28s} {errors}  {worst:12.1e}  {counted}", flush=True)


def in_families(chosen: argparse.Namespace) -> None:
    """Score the families and print or write their page."""
    few = FAMILIES[::QUICK_STRIDE] if chosen.quick else FAMILIES
    families = [f for f in few if chosen.only is None or chosen.only in f.name]
    seeds = range(chosen.first_seed, chosen.first_seed + (1 if chosen.quick else chosen.datasets))
    text = page(families, completed(chosen.records, families, seeds, chosen.jobs))
    if chosen.page is None:
        print(text)
    else:
        chosen.page.write_text(text)


def main(arguments: list[str] | None = None) -> None:
    """Read the command line and run one of the two studies."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    studies = parser.add_subparsers(required=True)
    for name, run, datasets, jobs in (("bodies", bodies, 50, 2), ("families", in_families, 20, 1)):
        study = studies.add_parser(name)
        study.set_defaults(run=run)
        study.add_argument("--datasets", type=int, default=datasets)
        study.add_argument("--first-seed", type=int, default=0)
        study.add_argument("--jobs", type=int, default=jobs)
        if name == "bodies":
            study.add_argument("--integrated", action="store_true", help="average over hyperparameters (default: plug-in)")
        else:
            study.add_argument("--quick", action="store_true", help="one seed of every sixth family")
            study.add_argument("--only", help="families whose name contains this")
            study.add_argument("--records", type=Path, default=Path("never-worse.jsonl"))
            study.add_argument("--page", type=Path)
    chosen = parser.parse_args(arguments)
    chosen.run(chosen)


if __name__ == "__main__":
    main()
