"""A data set with its law: what an example needs, in one object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sumgp.notebook import facts_table

if TYPE_CHECKING:
    import pandas as pd

    from sumgp.estimator import ConstrainedGP


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A table ``frame`` (N rows) with the names of its inputs and outputs, the law of its outputs, and where it is from.

    ``constants`` are as in ConstrainedGP. ``X`` and ``Y`` are the columns to fit; ``model()`` is the estimator for them.
    """

    name: str
    title: str
    frame: pd.DataFrame
    inputs: list[str]
    outputs: list[str]
    law: str
    constants: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""
    licence: str = ""

    @property
    def X(self) -> pd.DataFrame:
        """(N, D + E): inputs, then columns that the law takes constants from."""
        extra = [v for v in self.constants.values() if isinstance(v, str) and v != "unknown"]
        return self.frame[[*self.inputs, *dict.fromkeys(extra)]]

    @property
    def Y(self) -> pd.DataFrame:
        """(N, T) outputs, NaN = not measured."""
        return self.frame[self.outputs]

    def model(self, **settings: Any) -> ConstrainedGP:
        """An estimator with this law, not yet fitted; ``settings`` are further arguments of ConstrainedGP."""
        from sumgp.estimator import ConstrainedGP

        given = {"outputs": self.outputs, "inputs": self.inputs, "constants": dict(self.constants) or None}
        return ConstrainedGP(self.law, **{**given, **settings})

    def __repr__(self) -> str:
        return f"Dataset({self.name}: {len(self.frame)} rows, {', '.join(self.inputs)} -> {', '.join(self.outputs)})"

    def __str__(self) -> str:
        return "\n".join(f"{key}: {value}" for key, value in self._facts())

    def _repr_html_(self) -> str:
        return facts_table(self._facts()) + self.frame.head().to_html()

    def _facts(self) -> list[tuple[str, str]]:
        constants = ", ".join(f"{name} = {value}" for name, value in self.constants.items())
        facts = [
            ("data", f"{self.title}; {len(self.frame)} rows"),
            ("inputs", ", ".join(self.inputs)),
            ("outputs", ", ".join(self.outputs)),
            ("law", self.law),
            ("constants", constants),
            ("source", f"{self.source} ({self.licence})"),
        ]
        return [(key, value) for key, value in facts if value]
