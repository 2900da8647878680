"""The small data sets that come with the package: each a table with its law."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np

from sumgp.errors import DataError
from sumgp.notebook import facts_table

if TYPE_CHECKING:
    import pandas as pd

    from sumgp.estimator import ConstrainedGP


POSITIONS, VELOCITIES = ["x", "y", "z"], ["vx", "vy", "vz"]
# Standard gravitational parameter of the Sun and energy per mass of Mars, in au and days (DE421).
MARS_CONSTANTS = {"mu": 2.959123037810780e-04, "E": -9.710461887661e-05}


def oscillator() -> Dataset:
    """Position z and velocity v of an oscillator with gaps; the energy is known: 20 rows, simulated with noise."""
    return Dataset(
        name="oscillator",
        title="position and velocity of an oscillator, simulated with noise and gaps",
        frame=_table("oscillator"),
        inputs=["t"],
        outputs=["z", "v"],
        law="k/2*z**2 + m/2*v**2 = E",
        constants={"k": 1.0, "m": 1.0, "E": 0.8},
        source="made for this package",
        licence="MIT",
    )


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
    return Dataset(
        name="electricity",
        title=f"electricity of {country} by source, per cent",
        frame=frame[["year", *outputs]],
        inputs=["year"],
        outputs=outputs,
        law=f"{' + '.join(outputs)} = 100",
        source="Our World in Data, energy data set",
        licence="CC BY 4.0",
    )


def epidemic() -> Dataset:
    """Active, recovered and dead cases that add up to the confirmed ones, over dates: 93 rows, millions."""
    import pandas as pd

    frame = _table("epidemic")
    frame["date"] = pd.to_datetime(frame["date"])
    return Dataset(
        name="epidemic",
        title="COVID-19 in the world, January 2020 to July 2021, millions",
        frame=frame,
        inputs=["date"],
        outputs=["active", "recovered", "deaths"],
        law="active + recovered + deaths = confirmed",
        constants={"confirmed": "confirmed"},
        source="Johns Hopkins University CSSE, packaged by datasets/covid-19",
        licence="CC BY 4.0",
    )


def tourism() -> Dataset:
    """Visitor nights in Australia with two laws, by purpose and of holidays by state: 36 quarters from 1998."""
    frame = _table("tourism")
    states = [name for name in frame.columns if name.endswith("_hol")]
    return Dataset(
        name="tourism",
        title="visitor nights in Australia by purpose, and of holidays by state, thousands of the source's unit",
        frame=frame,
        inputs=["quarter"],
        outputs=[name for name in frame.columns if name != "quarter"],
        law=f"hol + vfr + bus + oth = total; {' + '.join(states)} = hol",
        source="Tourism Research Australia, in gluonts-hierarchical-ICML-2021",
        licence="Apache-2.0",
    )


def mars(noise: float = 0.03, random_state: int = 0) -> Dataset:
    """Position (au) and velocity (au per day) of Mars with its law of energy: 55 rows over three years.

    ``noise``: standard deviation of the noise added, as a share of that of the positions, and of the velocities.
    """
    frame = _table("mars")
    generator = np.random.default_rng(random_state)
    for names in (POSITIONS, VELOCITIES):
        values = frame[names].to_numpy()
        spread = float(np.sqrt(values.var(axis=0).mean()))
        frame[names] = values + noise * spread * generator.standard_normal(values.shape)
    return Dataset(
        name="mars",
        title="Mars around the Sun, with noise",
        frame=frame,
        inputs=["t"],
        outputs=[*POSITIONS, *VELOCITIES],
        law="(vx**2 + vy**2 + vz**2)/2 - mu/sqrt(x**2 + y**2 + z**2) = E",
        constants=MARS_CONSTANTS,
        source="JPL ephemeris DE421",
        licence="public domain",
    )


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
