"""Every component of a fit answers all that predictions, reports and scores ask, and its answers agree with each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conformance.checks import data, estimator
from conformance.laws import LAWS, X

from sumgp import ConstrainedGP, Linearized, Markov, Projected, Transformed, Unconstrained
from sumgp.strategies import PosteriorComponent

# A new component joins by one line.
FITS: dict[str, dict[str, Any]] = {
    "weights": {"strategy": Linearized(draws=2)},
    "projected": {"strategy": Projected(draws=2)},
    "unconstrained": {"strategy": Unconstrained(draws=2)},
    "series": {"strategy": Linearized(), "solver": Markov()},
    "transformed": {"strategy": Transformed()},
}


@pytest.fixture(scope="module", params=FITS)
def fitted(request: pytest.FixtureRequest) -> ConstrainedGP:
    law = LAWS["squares"]
    model = estimator(law=law, **FITS[request.param])
    return model.fit(X, data(law, "complete"))


def test_answers_have_the_promised_shapes_and_agree(fitted: ConstrainedGP) -> None:
    component = fitted.fitted_.components[0]
    assert isinstance(component, PosteriorComponent)
    x_law = fitted.data_.x[:4] + 0.05
    x, C, T = fitted.scaling_.inputs(x_law), component.n_columns, fitted.n_outputs_
    mean, covariance = component.marginals(x, x_law)
    assert mean.shape == (4, C)
    assert component.noise.shape == (T,)
    joint = component.joint_covariance(x, x_law)
    blocks = joint.reshape(4, C, 4, C)[np.arange(4), :, np.arange(4), :]
    np.testing.assert_allclose(blocks, covariance, atol=1e-6 * np.max(np.abs(covariance)))
    whole = component.joint_gaussian(x, x_law)
    if whole is not None:
        np.testing.assert_allclose(whole.covariance(), joint, atol=1e-9 * np.max(np.abs(joint)))
    local = component.local_posteriors([component, component], x, x_law)
    for part in local:
        np.testing.assert_allclose(part.mean, mean, atol=1e-12)
    wide = component.widened(2.0)
    assert wide.sample(x, x_law, 3, np.random.default_rng(0)).shape == (3, 4, C)
    marginals = component.distribution(x, x_law)
    if marginals is not None:
        inside = marginals.cdf(mean + 8.0) - marginals.cdf(mean - 8.0)
        np.testing.assert_allclose(inside, 1.0, atol=1e-3)
    assert all(np.all(np.isfinite(lengths) & (lengths > 0)) for lengths in component.lengthscales())
    assert component.lengthscales()


def test_widened_components_have_wider_marginals(fitted: ConstrainedGP) -> None:
    component = fitted.fitted_.components[0]
    x_law = fitted.data_.x[:4] + 0.05
    x = fitted.scaling_.inputs(x_law)
    if component.distribution(x, x_law) is not None:
        return  # the spread of a transformed output is not that of its transform
    plain, wide = (c.marginals(x, x_law) for c in (component, component.widened(1.5)))
    np.testing.assert_allclose(wide[0], plain[0], atol=1e-6)
    np.testing.assert_allclose(wide[1], 2.25 * plain[1], rtol=1e-4, atol=1e-8)
