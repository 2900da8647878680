"""Real development sets: cases of a protocol, baselines, scores, table."""

from real_sets.case import Case, Part
from real_sets.cases import SETS, cases
from real_sets.methods import METHODS, predicted
from real_sets.scores import scored
from real_sets.table import page, summary

__all__ = ["METHODS", "SETS", "Case", "Part", "cases", "page", "predicted", "scored", "summary"]
