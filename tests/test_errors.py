"""Errors and warnings: their parts, and where they point."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

from sumgp import ConstrainedGP, DataError, SumGPWarning


def test_four_parts_make_one_message_that_survives_another_process() -> None:
    error = DataError("rank", "a number", "'two'", "leave it out")
    assert str(error) == "rank: expected a number, got 'two'; leave it out"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert str(DataError("plain words")) == "plain words"


def test_a_warning_points_at_the_line_of_the_user() -> None:
    """However deep in the package it is found, and whichever of its methods was called."""
    X = pd.DataFrame({"t": np.linspace(0.0, 6.0, 12)})
    Y = pd.DataFrame({"a": np.sin(X["t"]), "b": 1.0 - np.sin(X["t"])})
    other = Y.set_axis(range(100, 112))
    gp = ConstrainedGP("a + b = 1", uncertainty="plug-in", restarts=0).fit(X, Y)
    for call in (lambda: gp.score(X, other), lambda: gp.complete(X, other)):
        with pytest.warns(SumGPWarning, match="row labels differ") as found:
            call()
        assert {w.filename for w in found if issubclass(w.category, SumGPWarning)} == {__file__}
