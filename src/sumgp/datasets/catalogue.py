"""The small data sets that come with the package: each a table with its law."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np

from sumgp.errors import DataError
from sumgp.notebook import facts_table

if TYPE_CHECKING:
    import pandas as pd

    from sumgp.estimator import ConstrainedGP


@cache
def _catalogue() -> dict[str, dict[str, Any]]:
    return tomllib.loads(resources.files("sumgp.datasets").joinpath("catalogue.toml").read_text(encoding="utf-8"))


def _dataset(name: str, frame: pd.DataFrame, outputs: Sequence[str] = (), **words: str) -> Dataset:
    """As the catalogue describes it, with ``words`` in title and law; ``outputs`` where it leaves them open."""
    facts = deepcopy(_catalogue()[name])
    facts |= {key: facts[key].format(**words) for key in ("title", "law")}
    return Dataset(name=name, frame=frame, **{"outputs": list(outputs), **facts})


def oscillator() -> Dataset:
    """Position z and velocity v of an oscillator with gaps; the energy is known: 20 rows, simulated with noise."""
    return _dataset("oscillator", _table("oscillator"))


def electricity(country: str = "Portugal") -> Dataset:
    """Shares of electricity by source that sum to 100 %, 32 to 37 years.

    Of Finland, France, Hungary, India, Mexico or Portugal. A source that the country never used is left out, of the
    outputs and of the law.
    """
    frame = _table("electricity")
    countries = sorted(frame["country"].unique())
    if country not in countries:
        raise DataError("country", f"one of {', '.join(countries)}", repr(country), "choose one of them")
    frame = frame[frame["country"] == country].drop(columns="country").reset_index(drop=True)
    outputs = [name for name in frame.columns if name != "year" and (frame[name] != 0).any()]
    return _dataset("electricity", frame[["year", *outputs]], outputs, country=country, terms=" + ".join(outputs))


def epidemic() -> Dataset:
    """Active, recovered and dead cases that add up to the confirmed ones, over dates: 93 rows, millions."""
    import pandas as pd

    frame = _table("epidemic")
    frame["date"] = pd.to_datetime(frame["date"])
    return _dataset("epidemic", frame)


def tourism() -> Dataset:
    """Visitor nights in Australia with two laws, by purpose and of holidays by state: 36 quarters from 1998."""
    frame = _table("tourism")
    states = " + ".join(name for name in frame.columns if name.endswith("_hol"))
    return _dataset("tourism", frame, [name for name in frame.columns if name != "quarter"], states=states)


def mars(noise: float = 0.03, random_state: int = 0) -> Dataset:
    """Position (au) and velocity (au per day) of Mars with its law of energy: 55 rows over three years.

    ``noise``: standard deviation of the noise added, as a share of that of the positions, and of the velocities.
    """
    frame = _table("mars")
    generator = np.random.default_rng(random_state)
    for names in (["x", "y", "z"], ["vx", "vy", "vz"]):
        values = frame[names].to_numpy()
        spread = float(np.sqrt(values.var(axis=0).mean()))
        frame[names] = values + noise * spread * generator.standard_normal(values.shape)
    return _dataset("mars", frame)


def all_datasets() -> dict[str, Callable[[], Dataset]]:
    """Name -> function of every data set."""
    return {function.__name__: function for function in (oscillator, electricity, epidemic, tourism, mars)}


def _table(name: str) -> pd.DataFrame:
    import pandas as pd

    with resources.files("sumgp.datasets").joinpath(f"{name}.csv").open("rb") as stream:
        return pd.read_csv(stream)


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
