"""Every experiment of the paper by name."""

from __future__ import annotations

from pathlib import Path

from sumgp_studies.experiments.approximations import Approximations
from sumgp_studies.experiments.double_pendulum import DoublePendulum
from sumgp_studies.experiments.free_fall import FreeFall
from sumgp_studies.experiments.log_sine import LogSine
from sumgp_studies.experiments.oscillators import DampedOscillator, HarmonicOscillator
from sumgp_studies.experiments.problem import Problem
from sumgp_studies.experiments.triangle import Triangle


def all_problems(recordings: Path | None = None) -> dict[str, Problem]:
    """Every experiment by name, in the order of the paper; ``recordings`` is the folder of the double pendulum's files."""
    problems: tuple[Problem, ...] = (
        HarmonicOscillator(), Triangle(), DoublePendulum(recordings), FreeFall(), DampedOscillator(), LogSine(),
        Approximations(),
    )  # fmt: skip
    return {problem.name: problem for problem in problems}
