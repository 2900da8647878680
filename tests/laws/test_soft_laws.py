"""Laws that hold up to an error: the text, the error learnt from complete rows, and what is done with it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from sumgp import ConstrainedGP, load
from sumgp.data import Data
from sumgp.errors import ConstraintError, DataError, SumGPWarning
from sumgp.laws import FormulaConstraint, learnt_errors, split_law, with_errors


@pytest.mark.parametrize("sign", ["+-", "±", "+/-"])
def test_the_size_of_an_error_is_read(sign: str) -> None:
    law = FormulaConstraint(f"a = b + c {sign} 2.5e1; b = 2*c").bind(["a", "b", "c"])
    assert law.noise.tolist() == [25.0, 0.0]
    unknown = FormulaConstraint(f"a*b = c {sign}unknown").bind(["a", "b", "c"])
    assert np.isnan(unknown.noise).all()
    assert "estimated from complete rows" in unknown.explain()
    assert np.isnan(unknown.relaxed(np.ones(3)).noise).all()


@pytest.mark.parametrize(
    "text", ["a = b +- ", "a = b +- c", "a +- 1 = b", "a = b +- -1", "a = b +- 1 +- 2", "a = b +- 1e400"]
)
def test_other_errors_are_refused_with_a_caret(text: str) -> None:
    with pytest.raises(ConstraintError, match=r"\^"):
        FormulaConstraint(text)


def balance(n: int = 40, seed: int = 1000) -> tuple[np.ndarray, np.ndarray]:
    """a = b + c misses by 5 on average, with a standard deviation of 1; nothing but the law tells c, which scatters by 4."""
    rng = np.random.default_rng(seed)
    t = np.linspace(0.0, 6.0, n)
    b, c = 10.0 + 3.0 * np.sin(t), 5.0 + 4.0 * rng.standard_normal(n)
    Y = np.column_stack([b + c + 5.0 + rng.standard_normal(n), b, c])
    return t, Y


def test_mean_and_size_are_those_of_complete_rows() -> None:
    t, Y = balance()
    Y[::3, 2] = np.nan
    data = Data(t[:, None], Y, ("t",), ("a", "b", "c"))
    law = FormulaConstraint("a = b + c +- unknown").bind(["a", "b", "c"])
    (error,) = learnt_errors(law, data)
    missed = (Y[:, 0] - Y[:, 1] - Y[:, 2])[~np.isnan(Y[:, 2])]
    assert error.count == len(missed)
    assert (error.bias, error.spread) == pytest.approx((missed.mean(), missed.std(ddof=1)))
    n = len(missed)
    assert error.sd == pytest.approx(error.spread * np.sqrt((1 + 1 / n) * (n - 1) / (n - 3)))
    shifted = with_errors(law, (error,))
    assert shifted.residual(Y[1:2], t[1:2, None]) == pytest.approx(law.residual(Y[1:2], t[1:2, None]) - error.bias)
    curved = FormulaConstraint("a = b*c +- unknown").bind(["a", "b", "c"])
    moved = with_errors(curved, learnt_errors(curved, data))
    g = (Y[:, 0] - Y[:, 1] * Y[:, 2])[~np.isnan(Y[:, 2])]
    complete = ~np.isnan(Y[:, 2])
    assert moved.residual(Y[complete], t[complete, None])[:, 0] == pytest.approx(g - g.mean())
    assert moved.relaxed(np.ones(3)).residual(Y[complete], t[complete, None])[:, 0] == pytest.approx(g - g.mean())
    with pytest.raises(DataError, match="at least 5 rows"):
        learnt_errors(law, Data(t[:4, None], Y[:4], ("t",), ("a", "b", "c")))


def test_learnt_error_fills_gaps_that_the_exact_law_misses(tmp_path: Path) -> None:
    """In a gap of c the exact law is wrong by the mean imbalance of 5; learnt, it is not, and says so."""
    t, Y = balance()
    holed = Y.copy()
    holed[16:25, 2] = np.nan
    settings = {"outputs": ["a", "b", "c"], "kernel": RBF(), "uncertainty": "plug-in", "restarts": 1}
    gp = ConstrainedGP("a = b + c +- unknown", **settings).fit(t, holed)
    (words,) = gp.fit_report_.details["soft_laws"]
    assert words.startswith("a = b + c +- unknown: 31 complete rows miss the law by ")
    with pytest.warns(SumGPWarning, match="'\\+- unknown' at its end"):
        exact = ConstrainedGP("a = b + c", **settings).fit(t, holed)
    gaps = np.isnan(holed)
    done = gp.completion(t, holed)
    error = np.sqrt(np.mean((done.mean - Y)[gaps] ** 2))
    assert error < 1.8
    assert error < 0.6 * np.sqrt(np.mean((exact.completion(t, holed).mean - Y)[gaps] ** 2))
    assert np.mean(np.abs((done.mean - Y)[gaps]) < 1.96 * done.std[gaps]) > 0.7
    assert not done.determined.any()
    gp.save(tmp_path / "model.sumgp")
    again = load(tmp_path / "model.sumgp")
    assert again.completion(t, holed).mean == pytest.approx(done.mean, abs=1e-9)
    assert again.fit_report_.details["soft_laws"] == [words]


@pytest.mark.parametrize("other", ["z*v = 1", "z + v = t**2"])
def test_single_rows_keep_their_errors_and_labels(other: str) -> None:
    law = FormulaConstraint(f"d(z, t) = v +- 0.5; {other}").bind(["z", "v"], ["t"])
    for some in (law.rows([0]), law.relaxed(np.ones(law.n_columns)).rows([0])):
        assert some.noise.tolist() == [0.5]
        assert some.labels == law.labels[:1]
    assert split_law(law) is None  # what holds only roughly is not built into the prior
