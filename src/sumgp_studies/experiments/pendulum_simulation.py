"""A simulated double pendulum, seen by a simulated camera: stands in where the recordings are not at hand.

Two point masses on massless arms, angles a1, a2 measured from straight down. Lagrange's equations are
  M(d) (a1'', a2'')^T = -m2 l1 l2 sin(d) (a2'^2, -a1'^2)^T - g ((m1 + m2) l1 sin a1, m2 l2 sin a2)^T,  d = a1 - a2,
  M(d) = [[(m1 + m2) l1^2, m2 l1 l2 cos d], [m2 l1 l2 cos d, m2 l2^2]].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class SimulatedPendulum:
    """Masses, arms (metres) and camera like those of the recordings.

    ``jitter`` is the marking error in raw units; with rounding to whole units it gives the 0.36 that high-order
    differences of the recordings show.
    """

    m1: float = 6.5
    m2: float = 1.0
    l1: float = 0.091
    l2: float = 0.070
    gravity: float = 9.81
    frame_rate: float = 500.0
    units_per_metre: float = 6450.0
    jitter: float = 0.22
    energies: tuple[float, float] = (-5.5, -2.5)  # the range met in the second half of the recordings

    def recording(self, n_rows: int, generator: np.random.Generator) -> np.ndarray:
        """(n_rows, 6) whole numbers, laid out as a recorded file."""
        motion = self.motion(self.start(generator), n_rows)
        a1, a2 = motion[:, 0], motion[:, 1]
        arm1 = np.column_stack([self.l1 * np.cos(a1), self.l1 * np.sin(a1)])
        arm2 = np.column_stack([self.l2 * np.cos(a2), self.l2 * np.sin(a2)])
        pivot = np.full((n_rows, 2), 1200.0)
        ends = np.tile(pivot, 2) + self.units_per_metre * np.hstack([arm1, arm1 + arm2])
        return np.hstack([pivot, np.round(ends + self.jitter * generator.standard_normal(ends.shape))])

    def motion(self, start: np.ndarray, n_rows: int) -> np.ndarray:
        """(n_rows, 4) angles and angular velocities, one row a frame."""
        # Imported here because every worker process would pay for it, and few need it.
        from scipy.integrate import solve_ivp

        times = np.arange(n_rows) / self.frame_rate
        solution = solve_ivp(self._slope, (0.0, times[-1]), start, "DOP853", times, rtol=1e-10, atol=1e-10)
        return solution.y.T

    def start(self, generator: np.random.Generator) -> np.ndarray:
        """(4,) random angles below the drawn energy, with the rest of it as motion in a random direction."""
        energy = generator.uniform(*self.energies)
        while True:
            angles = generator.uniform(-np.pi, np.pi, 2)
            left = energy - self.energy(np.array([*angles, 0.0, 0.0]))
            if left > 0:
                break
        direction = generator.standard_normal(2)
        unit = direction @ self._inertia(angles[0] - angles[1]) @ direction / 2.0
        return np.concatenate([angles, direction * np.sqrt(left / unit)])

    def energy(self, state: np.ndarray) -> float:
        """Kinetic plus potential energy, zero at the height of the pivot."""
        a1, a2, w1, w2 = state
        speeds = np.array([w1, w2])
        height1 = -self.l1 * np.cos(a1)
        potential = self.gravity * (self.m1 * height1 + self.m2 * (height1 - self.l2 * np.cos(a2)))
        return float(speeds @ self._inertia(a1 - a2) @ speeds / 2.0 + potential)

    def _inertia(self, difference: float) -> np.ndarray:
        coupling = self.m2 * self.l1 * self.l2 * np.cos(difference)
        return np.array([[(self.m1 + self.m2) * self.l1**2, coupling], [coupling, self.m2 * self.l2**2]])

    def _slope(self, time: float, state: np.ndarray) -> np.ndarray:
        a1, a2, w1, w2 = state
        coupling = self.m2 * self.l1 * self.l2 * np.sin(a1 - a2)
        torque = -coupling * np.array([w2**2, -(w1**2)]) - self.gravity * np.array(
            [(self.m1 + self.m2) * self.l1 * np.sin(a1), self.m2 * self.l2 * np.sin(a2)]
        )
        return np.array([w1, w2, *np.linalg.solve(self._inertia(a1 - a2), torque)])
