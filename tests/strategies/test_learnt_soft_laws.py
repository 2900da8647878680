"""Laws whose error is estimated from complete rows: what they may vary by, and that they do no harm."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from sumgp import ConstrainedGP
from sumgp.priors import FullTask, MultitaskPrior, NoiseModel, TaskLaw, hyper_priors


@pytest.mark.parametrize(("centred", "share"), [(False, 0.2), (True, 1.0)])
def test_an_error_without_a_constant_part_varies_by_its_whole_size(centred: bool, share: float) -> None:
    """Under an amplitude far larger than the error s the imbalance has the variance s^2, or that of its varying part."""
    kernel, s = RBF(0.5), 0.1
    law = TaskLaw(np.array([[1.0, 1.0]]) / np.sqrt(2.0), np.array([s]), np.zeros((4, 1)), np.array([centred]))
    noise = NoiseModel(((0,), (1,)), np.ones(2))
    prior = MultitaskPrior((kernel,), (tuple(hyper_priors(kernel, np.ones(1))),), (FullTask(2),), noise, 2, law=law)
    conditioning = prior.conditioned(1e6 * np.eye(2))
    assert conditioning is not None
    assert float(law.F[0] @ conditioning.covariance @ law.F[0]) == pytest.approx(share * s**2, rel=1e-4)


def budget(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """a = b + c up to a share of a and noise that rows have in common; b and c are missing for a while, c here and there."""
    generator = np.random.default_rng(seed)
    t = np.linspace(0.0, 6.0, 60)
    a = 10.0 * np.sin(2.0 * t) + 3.0 * np.sin(5.1 * t)
    slow = np.cos(0.7 * t)
    common = generator.standard_normal(60)
    truth = np.stack([a, 0.3 * a + slow, 0.5 * a - slow], axis=1) + common[:, None] * [1.5, 0.4, 0.8]
    truth += 0.3 * generator.standard_normal(truth.shape)
    y = truth.copy()
    y[generator.random(60) < 0.3, 2] = np.nan
    y[26:36, 1:] = np.nan
    return t[:, None], y, truth


def test_a_learnt_law_is_not_worse_than_none() -> None:
    errors = {law: [] for law in ("a = b + c +- unknown", None)}  # type: ignore[var-annotated]
    for seed in (1000,):
        t, y, truth = budget(seed)
        for law, found in errors.items():
            gp = ConstrainedGP(law, outputs=["a", "b", "c"], inputs=["t"]).fit(t, y)
            assert gp.fit_report_["kinds"]["own"] > 0
            filled = gp.posterior(t, given=y).observed().mean
            found.append(float(np.mean((filled - truth)[np.isnan(y)] ** 2)))
    assert np.sqrt(np.mean(errors["a = b + c +- unknown"])) < 1.05 * np.sqrt(np.mean(errors[None]))
