"""The paper's experiments: problems, published numbers, methods, and the runner that compares them."""

from __future__ import annotations

from pathlib import Path

from sumgp.experiments.approximations import Approximations
from sumgp.experiments.damped_oscillator import DampedOscillator
from sumgp.experiments.double_pendulum import DoublePendulum
from sumgp.experiments.free_fall import FreeFall
from sumgp.experiments.harmonic_oscillator import HarmonicOscillator
from sumgp.experiments.log_sine import LogSine
from sumgp.experiments.problem import Cell, Dataset, Problem
from sumgp.experiments.triangle import Triangle

__all__ = [
    "Approximations",
    "Cell",
    "DampedOscillator",
    "Dataset",
    "DoublePendulum",
    "FreeFall",
    "HarmonicOscillator",
    "LogSine",
    "Problem",
    "Triangle",
    "all_problems",
]


def all_problems(recordings: Path | None = None) -> dict[str, Problem]:
    """Every experiment by name, in the order of the paper; ``recordings`` is the folder of the double pendulum's files."""
    problems: tuple[Problem, ...] = (
        HarmonicOscillator(), Triangle(), DoublePendulum(recordings), FreeFall(), DampedOscillator(), LogSine(),
        Approximations(),
    )  # fmt: skip
    return {problem.name: problem for problem in problems}
