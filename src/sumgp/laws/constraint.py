"""What a user writes down: constraint objects that know nothing of data until they are bound."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from sumgp.laws.law import Law, SumLaw


@dataclass(frozen=True)
class Unknown:
    """A constant total that is to be estimated together with the outputs.

    ``name`` is how it is called in reports; ``LinearConstraint([1, 1], Unknown("mass"))``.
    """

    name: str = "total"


class Constraint(ABC):
    """A law in the user's words: a formula, a matrix, a sum of terms, or a function."""

    @abstractmethod
    def bind(self, outputs: Sequence[str], inputs: Sequence[str]) -> Law:
        """Return the law for these output and input names, or raise ConstraintError."""

    def bounds(self, outputs: Sequence[str], inputs: Sequence[str]) -> tuple[SumLaw, ...]:
        """Linear laws whose residual is to be zero or less."""
        return ()

    def in_one_unit(self, outputs: Sequence[str], inputs: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """Sets of outputs that the law tells to be in one unit, such as the coordinates of a length; they may overlap."""
        return ()
