"""Mistakes of a first hour: each message names what is wrong and what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sumgp

T = np.linspace(0.0, 3.0, 8)
TABLE = pd.DataFrame({"t": T, "z": np.sin(T), "v": np.cos(T)})
X, Y = TABLE[["t"]], TABLE[["z", "v"]]
CSV = Path(__file__).resolve().parent.parent / "examples" / "oscillator.csv"


def model(law: Any = "z + v = 1", **settings: Any) -> sumgp.ConstrainedGP:
    return sumgp.ConstrainedGP(
        law, **{"outputs": ["z", "v"], "inputs": ["t"], "uncertainty": "plug-in", "restarts": 0, **settings}
    )


def posterior() -> Any:
    return model(None, kernel="rbf").fit(X, Y).posterior(T)


MISTAKES: list[tuple[Callable[[], Any], str]] = [
    (lambda: model(None, outputs=["z", "w"]).fit(X, Y), "among ['z', 'v']; add that column or correct its name"),
    (lambda: model(inputs=["time"]).fit(X, Y), "among ['t']; add that column or correct its name"),
    (
        lambda: model().fit(X, Y.astype(object).replace({Y.z[0]: "n/a"})),
        "convert it with pandas.to_numeric, or leave 'z' out",
    ),
    (lambda: model("z + w = 1").fit(X, Y), 'give its value: constants={"w": 1.5}'),
    (lambda: model("z + v = E").fit(X.assign(E=1.0), Y), "did you mean constants={'E': 'E'}"),
    (lambda: model("z + v = E", constants=0.8).fit(X, Y), 'e.g. constants={"E": 0.8}'),
    (lambda: model().fit(X[:5], Y), "X and Y need one row per measurement"),
    (lambda: model().fit(X[:0], Y[:0]), "give at least one row"),
    (lambda: model().fit(X, Y * np.nan), "check how missing values were read"),
    (lambda: model(None).fit(X, Y.assign(v=np.nan)), "measure it, drop it, or give a law"),
    (lambda: model().fit(X * np.nan, Y), "drop that row; only outputs may be missing"),
    (lambda: model().fit(X, Y.assign(z=np.inf)), "write NaN for what was not measured"),
    (lambda: model().fit(T, Y.to_numpy().T), "give one column per output"),
    (lambda: model(outputs="z,v").fit(T, Y.to_numpy()), 'write outputs=["z", "v"]'),
    (lambda: model(kernel="gaussian").fit(X, Y), "expected one of rbf,"),
    (lambda: model(strategy="exact").fit(X, Y), "leave it out to have it chosen"),
    (lambda: model(noise=-1.0).fit(X, Y), "of zero or more"),
    (lambda: model(["z + v = 1", "z + v = 2"]).fit(X, Y), "contradicts 'z + v = 1'"),
    (lambda: model("z**2 + v**2 = -1").fit(X, Y), "correct a sign or total"),
    (lambda: model("z + v = 1; z >= 2; v >= 2").fit(X, Y), "correct a number or leave one of them out"),
    (lambda: model().predict(T), "call fit(X, Y) before predicting"),
    (lambda: posterior().interval(95), "e.g. 0.95"),
    (lambda: posterior().sample(-1), "e.g. 100"),
    (lambda: posterior().plot(labels=["a"]), 'e.g. labels={"z": "position in m"}'),  # type: ignore[arg-type]
    (lambda: model(None, kernel="rbf").fit(X, Y).predict(np.zeros((4, 3))), "give one column per input"),
    (lambda: model(None, kernel="rbf").fit(X, Y).predict(pd.DataFrame({"x": [1.0]})), "among ['x']; add that column"),
    (lambda: sumgp.load("nothing.sumgp"), "check the path"),
    (lambda: sumgp.load(str(CSV)), "give a file written by save()"),
    (lambda: sumgp.ConstrainedGp, "did you mean 'ConstrainedGP'?"),  # type: ignore[attr-defined]
]


@pytest.mark.parametrize(("mistake", "remedy"), MISTAKES, ids=[remedy[:30] for _, remedy in MISTAKES])
def test_the_message_names_the_remedy(mistake: Callable[[], Any], remedy: str) -> None:
    with pytest.raises((ValueError, AttributeError, OSError)) as caught:
        mistake()
    assert remedy in str(caught.value)
