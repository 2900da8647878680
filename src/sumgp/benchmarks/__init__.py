"""Measurements of speed: CPU times side by side in one run, with the limit that LAPACK sets."""

from sumgp.benchmarks.page import write_results
from sumgp.benchmarks.timing import Bar, Section, cpu_seconds

__all__ = ["Bar", "Section", "cpu_seconds", "write_results"]
