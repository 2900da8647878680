"""Data sets that come with the package: they obey their laws, say where they are from, and can be fitted at once."""

from __future__ import annotations

import numpy as np
import pytest

import sumgp
from sumgp.datasets import Dataset, all_datasets

# Largest size of a law's residual in the table, in the law's units: rounding of the columns, or the noise of the data.
MISSES = {"oscillator": 0.35, "electricity": 0.005, "epidemic": 1e-5, "tourism": 1e-5, "mars": 5e-5}


def residual(data: Dataset) -> np.ndarray:
    complete = data.frame.dropna()
    law = sumgp.parse_constraint(data.law, data.outputs, data.inputs, data.constants)
    x = complete[data.X.columns].copy()
    x[data.inputs] = 0.0  # no law here depends on the inputs themselves
    return np.abs(law.residual(complete[data.outputs].to_numpy(), x.to_numpy(dtype=float)))


@pytest.mark.parametrize("name", all_datasets())
def test_data_obey_their_law(name: str) -> None:
    data = all_datasets()[name]()
    assert data.name == name
    assert residual(data).max() < MISSES[name]
    assert len(data.X) == len(data.Y) == len(data.frame) <= 100
    assert data.source
    assert data.licence in (resources_text := sources())
    assert f"| {name}.csv |" in resources_text


def sources() -> str:
    from importlib import resources

    return resources.files("sumgp.datasets").joinpath("SOURCES.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("country", ["Finland", "France", "Hungary", "India", "Mexico", "Portugal"])
def test_electricity_of_every_country(country: str) -> None:
    data = sumgp.datasets.electricity(country)
    assert residual(data).max() < MISSES["electricity"]
    assert (data.Y.sum() > 0).all()


def test_an_unknown_country_is_refused_with_the_known_ones() -> None:
    with pytest.raises(sumgp.DataError, match="Finland, France"):
        sumgp.datasets.electricity("Atlantis")


def test_model_of_a_data_set_fits_as_it_stands() -> None:
    data = sumgp.datasets.oscillator()
    gp = data.model(uncertainty="plug-in").fit(data.X, data.Y)
    assert np.abs(gp.posterior(data.X).residual()).max() < 1e-12


def test_noise_of_mars_is_as_asked() -> None:
    exact, noisy = sumgp.datasets.mars(noise=0.0).Y.to_numpy(), sumgp.datasets.mars(noise=0.1, random_state=3).Y.to_numpy()
    for part in (slice(0, 3), slice(3, 6)):
        share = (noisy - exact)[:, part].std() / np.sqrt(exact[:, part].var(axis=0).mean())
        assert 0.08 < share < 0.12
    assert residual(sumgp.datasets.mars(noise=0.0)).max() < 1e-8


def test_shown_short_and_as_a_table() -> None:
    data = sumgp.datasets.tourism()
    assert len(repr(data)) < 200
    assert data.law in str(data)
    page = data._repr_html_()
    assert "<table" in page
    assert "Tourism Research Australia" in page
    assert len(page) < 6000
