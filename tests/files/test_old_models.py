"""Models written by version 0.1 are still read, and predict what they predicted then."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import sumgp

MODELS = Path(__file__).parent / "models"
PREDICTIONS = json.loads((MODELS / "predictions-0.1.json").read_text(encoding="utf-8"))
ASKED = np.array([0.3, 1.7, 2.9])


@pytest.mark.parametrize("name", PREDICTIONS)
def test_means_are_those_of_the_version_that_wrote_the_file(name: str) -> None:
    model = sumgp.load(MODELS / f"{name}.sumgp")
    posterior = model.posterior(ASKED)
    # The file holds everything but the arithmetic of the prediction: only round-off may differ.
    np.testing.assert_allclose(posterior.mean, PREDICTIONS[name], rtol=0, atol=1e-7)
    assert np.all(posterior.std > 0)
