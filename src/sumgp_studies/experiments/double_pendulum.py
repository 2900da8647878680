"""The real double pendulum (section 4.3, appendix D): 15 of 200 frames, energy as the law, arms as further laws."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sumgp.laws import Constraint, FormulaConstraint, FunctionConstraint, SumConstraint, Term
from sumgp.transforms import Square
from sumgp_studies.experiments.pendulum_data import read_recording
from sumgp_studies.experiments.pendulum_simulation import SimulatedPendulum
from sumgp_studies.experiments.problem import Cell, Dataset, Lengths, Problem

POSITIONS = ("zb_x", "zb_y", "zg_x", "zg_y")
VELOCITIES = ("vb_x", "vb_y", "vg_x", "vg_y")
N_RECORDINGS, N_ROWS = 21, 200
TRAINING_ROWS = np.arange(2, N_ROWS, 14)  # 15 rows, evenly spaced
# Position and velocity columns of arm 1 (from the pivot) and of arm 2 (from the end of arm 1).
ARMS = (((0, 1), None), ((2, 3), (0, 1)))
ENERGY = "a*(mb*zb_y + mg*zg_y) + mb/2*(vb_x**2 + vb_y**2) + mg/2*(vg_x**2 + vg_y**2) = E"
RIGID_ARMS = (
    "norm(zb) = l1; norm(zg, zb) = l2; zb_x*vb_x + zb_y*vb_y = 0; "
    "(zg_x - zb_x)*(vg_x - vb_x) + (zg_y - zb_y)*(vg_y - vb_y) = 0"
)
MOTION = "; ".join(f"d({z}, t) = ratio*{v}" for z, v in zip(POSITIONS, VELOCITIES, strict=True))


@dataclass(frozen=True)
class DoublePendulum(Problem):
    """Outputs zb, zg (positions x 20) and vb, vg (velocities x sqrt(10)) over time x 5, in metres and seconds.

    b is the end of arm 1, g that of arm 2, the vertical axis pointing up from the pivot. The law is ten times the
    energy: 10 g / 20 (m_b zb_y + m_g zg_y) + m_b/2 |vb|^2 + m_g/2 |vg|^2 = 10 E, with E averaged over the training
    rows; the violation is measured against the average over all 200 rows, as in the paper, and against its own total.
    ``folder`` holds the recordings; None means a simulated pendulum.
    """

    folder: Path | None = None
    frame_rate: float = 500.0
    units_per_metre: float = 6450.0
    mass_b: float = 6.5
    mass_g: float = 1.0
    gravity: float = 9.81
    position_scale: float = 20.0
    velocity_scale: float = float(np.sqrt(10.0))
    time_scale: float = 5.0

    name = "double_pendulum"
    title = "Double pendulum"
    number = 6
    cells = (Cell(),)
    default_methods = (
        "unconstrained", "projected", "transformed-gaussian", "linearized", "linearized+lengths",
        "derivative", "linearized+derivative", "linear-interpolation", "cubic-spline",
    )  # fmt: skip

    def source(self) -> str:
        if self.folder is None:
            return "SIMULATED double pendulum (no recordings were given): not comparable with the paper's numbers"
        return "recordings of a real double pendulum (Asseman, Kornuta, Ozcan 2018)"

    def comparable(self) -> bool:
        return self.folder is not None

    def raw_window(self, generator: np.random.Generator) -> np.ndarray:
        """(202, 6) raw rows: a random window of 200 with one more on each side, for velocities by differences."""
        if self.folder is None:
            return SimulatedPendulum().recording(N_ROWS + 2, generator)
        recording, start = int(generator.integers(N_RECORDINGS)), int(generator.integers(10_000, 17_000))
        return read_recording(self.folder / f"{recording}.csv")[start - 1 : start + N_ROWS + 1]

    def prepared(self, raw: np.ndarray) -> np.ndarray:
        """(n, 8) scaled positions about the pivot and velocities by central differences, for raw rows (n, 6)."""
        up = -(raw[:, [2, 4]] - raw[:, [0]])
        across = raw[:, [3, 5]] - raw[:, [1]]
        positions = np.stack([across, up], axis=2).reshape(len(raw), 4) / self.units_per_metre
        velocities = np.gradient(positions, 1.0 / self.frame_rate, axis=0)
        return np.hstack([self.position_scale * positions, self.velocity_scale * velocities])

    @property
    def weight(self) -> float:
        """The factor of the scaled heights in the law, for a unit mass."""
        return self.gravity * self.velocity_scale**2 / self.position_scale

    def energies(self, f: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(n,) potential and kinetic part of the law's left side."""
        potential = self.weight * (self.mass_b * f[:, 1] + self.mass_g * f[:, 3])
        kinetic = self.mass_b / 2 * (f[:, 4] ** 2 + f[:, 5] ** 2) + self.mass_g / 2 * (f[:, 6] ** 2 + f[:, 7] ** 2)
        return potential, kinetic

    def energy_law(self, total: float) -> Constraint:
        """Conservation of energy at the given total."""
        heights = [Term("zb_y", self.mass_b * self.weight), Term("zg_y", self.mass_g * self.weight)]
        masses = (self.mass_b, self.mass_b, self.mass_g, self.mass_g)
        speeds = [Term(name, mass / 2, Square()) for name, mass in zip(VELOCITIES, masses, strict=True)]
        return SumConstraint([*heights, *speeds], total)

    def dataset(self, cell: Cell, seed: int) -> Dataset:
        f = self.prepared(self.raw_window(self.generator(cell, seed)))[1:-1]
        times = self.time_scale * np.arange(N_ROWS)[:, None] / self.frame_rate
        test = np.setdiff1d(np.arange(N_ROWS), TRAINING_ROWS)
        energy = np.add(*self.energies(f))
        total = float(np.mean(energy[TRAINING_ROWS]))
        arms = arm_lengths(f[TRAINING_ROWS])
        constants = {
            "a": self.weight, "mb": self.mass_b, "mg": self.mass_g, "E": total, "l1": arms[0], "l2": arms[1]
        }  # fmt: skip
        return Dataset(
            X_train=times[TRAINING_ROWS],
            Y_train=f[TRAINING_ROWS],
            X_test=times[test],
            F_test=f[test],
            outputs=POSITIONS + VELOCITIES,
            inputs=("t",),
            constraint=self.energy_law(total),
            formula=ENERGY,
            constants=constants,
            groups=(POSITIONS, VELOCITIES),
            scored_constraint=self.energy_law(float(np.mean(energy))),
            further_constraint=rigid_arms(arms),
            further_formula=RIGID_ARMS,
            motion=MOTION.replace("ratio", repr(self.position_scale / self.velocity_scale / self.time_scale)),
            with_motion=FormulaConstraint(up_to_an_error(f"{ENERGY}; {RIGID_ARMS}"), constants),
            lengths=Lengths((POSITIONS[:2], POSITIONS[2:]), ((0, -1), (1, 0)), arms, ((0.0, 0.0),)),
            truth_is_measured=True,
            note=self.source(),
        )


def up_to_an_error(laws: str) -> list[str]:
    """The laws with errors that the training rows tell: friction, and marks that are not quite where the arms end."""
    return [f"{law} +- unknown" for law in laws.split("; ")]


def arm_lengths(f: np.ndarray) -> tuple[float, float]:
    """Mean length of arm 1 and of arm 2 in the rows f (n, 8)."""
    first, second = (float(np.mean(np.linalg.norm(arm, axis=1))) for arm in (f[:, :2], f[:, 2:4] - f[:, :2]))
    return first, second


def rigid_arms(lengths: tuple[float, float]) -> Constraint:
    """Four laws: each arm keeps its length, and its end moves at right angles to it."""

    def residual(f: np.ndarray, x: np.ndarray) -> np.ndarray:
        arms, speeds = _arms(f)
        lengths_now = np.linalg.norm(arms, axis=2)
        return np.hstack([lengths_now - np.asarray(lengths), np.sum(arms * speeds, axis=2)])

    def jacobian(f: np.ndarray, x: np.ndarray) -> np.ndarray:
        arms, speeds = _arms(f)
        slopes = np.zeros((len(f), 4, 8))
        for arm, (end, base) in enumerate(ARMS):
            along = arms[:, arm] / np.linalg.norm(arms[:, arm], axis=1, keepdims=True)
            for sign, columns in ((1.0, end), (-1.0, base)):
                if columns is not None:
                    moving = [column + 4 for column in columns]
                    slopes[:, arm, columns] = sign * along
                    slopes[:, 2 + arm, columns] = sign * speeds[:, arm]
                    slopes[:, 2 + arm, moving] = sign * arms[:, arm]
        return slopes

    return FunctionConstraint(residual, jacobian, rows=4, label="rigid arms")


def _arms(f: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(n, 2, 2) vectors along the arms and their rates of change."""
    positions, velocities = f[:, :4].reshape(-1, 2, 2), f[:, 4:].reshape(-1, 2, 2)
    return np.diff(positions, axis=1, prepend=0.0), np.diff(velocities, axis=1, prepend=0.0)
