"""Stand-ins for the runner's tests: quick methods, and a script that runs them in a process of its own."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import norm

from sumgp.errors import NumericalError
from sumgp_studies.experiments import HarmonicOscillator
from sumgp_studies.experiments.methods import Fitted, Method, Settings
from sumgp_studies.experiments.problem import Dataset
from sumgp_studies.experiments.records import RecordFile
from sumgp_studies.experiments.runner import Task, plan, records_path, run

TIMES = ("fit_seconds", "predict_seconds", "cpu_seconds")


@dataclass(frozen=True)
class Bell:
    """A Gaussian posterior with the same standard deviation everywhere."""

    mean: np.ndarray
    std: float = 0.1

    def interval(self, level: float) -> tuple[np.ndarray, np.ndarray]:
        half = norm.ppf((1 + level) / 2) * self.std
        return self.mean - half, self.mean + half

    def observed(self) -> Bell:
        return self

    def sample(self, n: int, random_state: int = 0) -> np.ndarray:
        return self.mean + self.std * np.random.default_rng(random_state).standard_normal((n, *self.mean.shape))


@dataclass(frozen=True)
class Waves(Method):
    """Least squares of sine and cosine, with ``pause`` seconds of waiting; ``shift`` spoils it on purpose."""

    name: str = "waves"
    pause: float = 0.0
    shift: float = 0.0

    def fit(self, dataset: Dataset, settings: Settings) -> Fitted:
        time.sleep(self.pause)
        weights = []
        for values in dataset.Y_train.T:
            known = np.isfinite(values)
            weights.append(np.linalg.lstsq(self.features(dataset.X_train[known]), values[known], rcond=None)[0])
        return Fitted(lambda X: Bell(self.features(X) @ np.column_stack(weights) + self.shift), "converged")

    @staticmethod
    def features(X: np.ndarray) -> np.ndarray:
        return np.column_stack([np.sin(X[:, 0]), np.cos(X[:, 0]), np.ones(len(X))])


@dataclass(frozen=True)
class Fails(Method):
    """A fit that always fails."""

    name: str = "fails"

    def fit(self, dataset: Dataset, settings: Settings) -> Fitted:
        raise NumericalError("nothing converged, <b>not even</b> this")


def stand_in_tasks(n_seeds: int, pause: float = 0.0) -> list[Task]:
    methods = [Waves(pause=pause), Waves("waves-off", pause=pause, shift=0.05)]
    return plan([HarmonicOscillator()], lambda problem: methods, range(n_seeds))


def without_times(file: RecordFile) -> list[dict]:
    """Records in a fixed order, times aside."""
    rows = [{name: value for name, value in vars(record).items() if name not in TIMES} for record in file.read()]
    return sorted(rows, key=lambda row: (row["noise"], row["missing"], row["dataset"], row["method"]))


if __name__ == "__main__":
    out, n_seeds, jobs, pause = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    run(stand_in_tasks(n_seeds, pause), RecordFile(records_path(out)), jobs)
