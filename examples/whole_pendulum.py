"""A whole recording of a real double pendulum: arms of fixed length at every frame, the energy never measured.

Needs the recordings (``sumgp reproduce double_pendulum --download`` fetches them) in the folder that SUMGP_DATA_DIR
names. Usage: python examples/whole_pendulum.py [NUMBER] [ROWS]; writes whole_pendulum.png to the working folder.
"""

import resource
import sys
import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.gaussian_process.kernels import Matern

import sumgp
from sumgp_studies.experiments.double_pendulum import POSITIONS, VELOCITIES, DoublePendulum, arm_lengths
from sumgp_studies.experiments.pendulum_data import find_recordings, read_recording

# Friction takes energy away all the time, so the energy is an output of its own: without a single measurement, but
# tied to the measured ones by the first law. The other four say that the arms are rigid.
LAWS = [
    "g*(mb*zb_y + mg*zg_y) + mb/2*(vb_x**2 + vb_y**2) + mg/2*(vg_x**2 + vg_y**2) = E",
    "zb_x**2 + zb_y**2 = l1**2",
    "(zg_x - zb_x)**2 + (zg_y - zb_y)**2 = l2**2",
    "zb_x*vb_x + zb_y*vb_y = 0",
    "(zg_x - zb_x)*(vg_x - vb_x) + (zg_y - zb_y)*(vg_y - vb_y) = 0",
]


def measured(number: int, rows: int | None) -> tuple[np.ndarray, np.ndarray, DoublePendulum]:
    """Times (N,) in seconds, positions and velocities (N, 8) in metres and metres per second, and the pendulum."""
    folder = find_recordings()
    if folder is None:
        sys.exit("set SUMGP_DATA_DIR to the folder that holds double_pendulum/0.csv to 20.csv")
    pendulum = DoublePendulum(folder, position_scale=1.0, velocity_scale=1.0, time_scale=1.0)
    f = pendulum.prepared(read_recording(folder / f"{number}.csv")[:rows])[1:-1]
    return np.arange(len(f)) / pendulum.frame_rate, f, pendulum


def main(number: int = 0, rows: int | None = None) -> None:
    t, f, pendulum = measured(number, rows)
    l1, l2 = arm_lengths(f)
    constants = {"g": pendulum.gravity, "mb": pendulum.mass_b, "mg": pendulum.mass_g, "l1": l1, "l2": l2}
    gp = sumgp.ConstrainedGP(
        LAWS,
        outputs=[*POSITIONS, *VELOCITIES, "E"],
        inputs=["t"],
        constants=constants,
        kernel=Matern(nu=2.5),
        solver=sumgp.Markov(),
        groups=[POSITIONS, VELOCITIES],
        rank=2,
    )
    start = time.perf_counter()
    gp.fit(t, np.hstack([f, np.full((len(f), 1), np.nan)]), progress=lambda stage: print(f"  {stage}", flush=True))
    fitted = time.perf_counter()
    posterior = gp.posterior(t)
    mean, (lower, upper) = posterior.mean, posterior.interval(0.95)
    done = time.perf_counter()
    print(f"{len(t)} rows, status {gp.fit_report_.status}, kernel {gp.fit_report_.kernel}")
    print(f"fit {fitted - start:.1f} s, smoothing at all rows {done - fitted:.1f} s, CPU {time.process_time():.1f} s")
    print(f"largest memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GB")
    print(f"largest residual of each law: {np.abs(posterior.residual()).max(axis=0)}")
    print(
        f"moved by (rms): positions {rms(mean[:, :4] - f[:, :4]):.2e} m, velocities {rms(mean[:, 4:8] - f[:, 4:]):.2e} m/s"
    )
    draw(t, np.add(*pendulum.energies(f)), mean[:, 8], lower[:, 8], upper[:, 8])


def rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2)))


def draw(t: np.ndarray, raw: np.ndarray, energy: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> None:
    """The whole curve, and one second of it from the middle where the band can be seen."""
    figure, axes = plt.subplots(2, 1, figsize=(9, 6), layout="constrained")
    middle = np.abs(t - t.mean()) < 0.5
    for axis, rows, name in ((axes[0], slice(None), "whole recording"), (axes[1], middle, "one second of it")):
        axis.plot(t[rows], raw[rows], ".", color="0.7", markersize=2, label="from each frame's differences")
        axis.fill_between(t[rows], lower[rows], upper[rows], color="C0", alpha=0.3, linewidth=0, label="95 % band")
        axis.plot(t[rows], energy[rows], color="C0", linewidth=1, label="energy given data and laws")
        axis.set(xlabel="time [s]", ylabel="energy [J/kg of mass g]", title=name)
    low, high = np.percentile(raw, [0.5, 99.5])
    axes[0].set_ylim(low - 0.1 * (high - low), high + 0.1 * (high - low))
    axes[0].legend()
    figure.savefig("whole_pendulum.png", dpi=120)


if __name__ == "__main__":
    main(*[int(word) for word in sys.argv[1:]])
