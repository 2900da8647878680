"""Large maps part by part: the same numbers as at once, files that are used again, folders of other fits refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sumgp import ConstrainedGP, Vecchia, many, predict_map
from sumgp.errors import DataError


@pytest.fixture(scope="module")
def model() -> ConstrainedGP:
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(120, 2))
    f = np.column_stack([np.sin(4 * x[:, 0]), 1.0 - np.sin(4 * x[:, 0])])
    gp = ConstrainedGP("a + b = 1", outputs=["a", "b"], solver=Vecchia(), uncertainty="plug-in")
    return gp.fit(x, f + 0.1 * rng.standard_normal((120, 2)))


def test_parts_are_what_one_posterior_says(model: ConstrainedGP, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(many, "PART", 40)
    at = np.random.default_rng(1).uniform(size=(100, 2))
    found = predict_map(model, at, jobs=1, folder=tmp_path, progress=False)
    posterior = model.posterior(at)
    np.testing.assert_allclose(found.mean, posterior.mean, rtol=1e-10)
    np.testing.assert_allclose(found.std, posterior.std, rtol=1e-10)
    np.testing.assert_allclose(np.stack([found.lower, found.upper]), posterior.interval(), rtol=1e-9)
    assert len(list(tmp_path.iterdir())) == 3
    (tmp_path / "part-000001.npz").unlink()
    monkeypatch.setattr(model, "posterior", _counted(model))
    again = predict_map(model, at, jobs=1, folder=tmp_path, progress=False)
    assert model.posterior.calls == [100, 40]  # type: ignore[attr-defined]
    np.testing.assert_array_equal(again.mean, found.mean)
    with pytest.raises(DataError, match="give an empty folder"):
        predict_map(model, at + 0.1, jobs=1, folder=tmp_path, progress=False)


def _counted(model: ConstrainedGP):
    inner = model.posterior

    def posterior(X: np.ndarray):
        posterior.calls.append(len(X))  # type: ignore[attr-defined]
        return inner(X)

    posterior.calls = []  # type: ignore[attr-defined]
    return posterior


def test_two_processes_give_the_same(model: ConstrainedGP, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(many, "PART", 40)
    at = np.random.default_rng(1).uniform(size=(45, 2))
    found = predict_map(model, at, jobs=2, progress=False)
    np.testing.assert_allclose(found.mean[-9:], model.predict(at[-9:]), rtol=1e-10)
