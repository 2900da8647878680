"""Lengths through products: the law on the products, coordinates back, uncertainty, projection."""

from __future__ import annotations

import numpy as np
import pytest

from sumgp.errors import ConstraintError
from sumgp_studies.experiments.problem import Cell
from sumgp_studies.experiments.triangle import Triangle
from sumgp_studies.gram import GramChoices, completed_anchors, fit_gram, fit_products
from sumgp_studies.gram_matrix import Gram


@pytest.fixture(scope="module")
def noisy_triangle() -> tuple:
    data = Triangle().dataset(Cell(1e-2), 3)
    return data, {c: fit_gram(data, c, "plug-in", 0) for c in (True, False)}


def test_errors_are_those_of_the_paper_or_less(noisy_triangle: tuple) -> None:
    data, fits = noisy_triangle
    errors = {}
    for constrained, fit in fits.items():
        post = fit.posterior(data.X_test)
        errors[constrained] = np.sqrt(np.mean(np.sum((post.mean - data.F_test) ** 2, axis=1)))
        lower, upper = post.interval(0.95)
        assert 0.75 < np.mean((lower <= data.F_test) & (data.F_test <= upper)) <= 1.0
    assert errors[True] < 0.042
    assert errors[False] < 0.039


def test_products_obey_the_law_and_coordinates_nearly(noisy_triangle: tuple) -> None:
    data, fits = noisy_triangle
    gram = fits[True].gram
    products, _ = fits[True]._products(data.X_test)
    full = np.repeat(gram.products(np.zeros((1, 6))), len(products), axis=0)
    full[:, fits[True].free] = products
    np.testing.assert_allclose(full @ gram.F.T, np.broadcast_to(gram.S, (len(full), len(gram.S))), atol=1e-8)
    worst = {c: np.max(np.abs(gram.residual(fit.posterior(data.X_test).mean))) for c, fit in fits.items()}
    assert 0.0 < worst[True] < 1.0
    assert worst[False] > 1e-6


def test_projection_meets_the_lengths(noisy_triangle: tuple) -> None:
    data, fits = noisy_triangle
    projected = fit_gram(data, True, "plug-in", 0, project=True).posterior(data.X_test)
    assert np.max(np.abs(fits[True].gram.residual(projected.mean))) < 1e-9
    np.testing.assert_allclose(projected.mean, fits[True].posterior(data.X_test).mean, atol=0.1)


def test_standard_deviations_are_those_of_sampled_products(noisy_triangle: tuple) -> None:
    data, fits = noisy_triangle
    fit, x = fits[True], data.X_test[::25]
    products, cov = fit._products(x)
    rng = np.random.default_rng(0)
    draws = []
    for mean, c in zip(products, cov, strict=True):
        values, vectors = np.linalg.eigh(c)
        sample = mean + rng.standard_normal((4000, len(mean))) @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
        draws.append(fit._coordinates(sample).std(axis=0))
    np.testing.assert_allclose(fit.posterior(x).std, draws, rtol=0.06)
    wider = fit.posterior(x).observed()
    np.testing.assert_allclose(wider.std**2 - fit.posterior(x).std ** 2, fit.noise, rtol=1e-9)
    assert np.sqrt(fit.noise) == pytest.approx(0.01, rel=0.4)
    density = fit.posterior(x).log_density(fit.posterior(x).mean)
    np.testing.assert_allclose(density, -0.5 * np.log(2 * np.pi * fit.posterior(x).std ** 2))


def test_a_rigid_rod_in_space_with_missing_coordinates() -> None:
    t = np.linspace(0.0, 3.0, 14)
    along = np.column_stack([np.cos(t), np.sin(t), np.full_like(t, 0.5)])
    start = np.column_stack([0.2 * t + 1.0, np.full_like(t, 2.0), 1.0 - 0.1 * t])
    truth = np.hstack([start, start + along])
    Y = truth + 0.005 * np.random.default_rng(1).standard_normal(truth.shape)
    Y[4, 1] = np.nan
    gram = Gram(2, [(0, 1, np.sqrt(1.25))], 2.0 * np.eye(3))
    mean = fit_products(gram, t[:, None], Y, GramChoices(True, "plug-in", 0, project=True)).posterior(t[:, None]).mean
    assert np.max(np.abs(gram.residual(mean))) < 1e-9
    assert np.sqrt(np.mean((mean - truth) ** 2)) < 0.02


def test_anchors_are_completed_to_span_the_space() -> None:
    anchors = completed_anchors(np.array([[4.0, 4.0]]))
    assert anchors.shape == (2, 2)
    assert abs(anchors[0] @ anchors[1]) < 1e-12
    np.testing.assert_allclose(np.linalg.norm(anchors, axis=1), np.sqrt(32.0))
    np.testing.assert_allclose(completed_anchors(np.eye(3)), np.eye(3))
    with pytest.raises(ConstraintError, match="anchors"):
        completed_anchors(np.zeros((1, 2)))
