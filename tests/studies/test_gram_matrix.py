"""Gram matrices: products and back, the law's rows, noise moments against sampling, projection onto the lengths."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize

from sumgp.errors import ConstraintError, NumericalError
from sumgp_studies.gram_matrix import Gram

PLANE = np.array([[4.0, 4.0], [-3.0, 5.0]])
SPACE = np.array([[2.0, 0.0, 0.5], [0.0, 3.0, 0.0], [0.0, 1.0, 2.0], [1.0, 1.0, 1.0]])


def rigid(shape: np.ndarray, n: int, seed: int) -> np.ndarray:
    """(n, P d) random rotations, reflections and shifts of a shape (P, d)."""
    rng = np.random.default_rng(seed)
    poses = []
    for _ in range(n):
        turn, _ = np.linalg.qr(rng.standard_normal((shape.shape[1], shape.shape[1])))
        poses.append((shape @ turn + rng.standard_normal(shape.shape[1])).ravel())
    return np.array(poses)


def all_edges(shape: np.ndarray) -> list[tuple[int, int, float]]:
    return [(i, j, float(np.linalg.norm(shape[i] - shape[j]))) for i in range(len(shape)) for j in range(i)]


TRIANGLE = np.array([[4.0, 4.0], [8.0, 4.0], [8.4, 6.0]])
TETRAHEDRON = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.2, 1.1, 0.0], [0.3, 0.4, 0.9], [1.5, 1.0, 0.7]])
CASES = [(TRIANGLE, PLANE), (TRIANGLE, np.vstack([PLANE, [[1.0, 0.3]]])), (TETRAHEDRON, SPACE[:3]), (TETRAHEDRON, SPACE)]
ids = ["triangle", "triangle, 3 anchors", "five points in space", "five points in space, 4 anchors"]


@pytest.mark.parametrize(("shape", "anchors"), CASES, ids=ids)
def test_products_and_back(shape: np.ndarray, anchors: np.ndarray) -> None:
    gram = Gram(len(shape), all_edges(shape), anchors)
    z = rigid(shape, 20, seed=1)
    products = gram.products(z)
    assert products.shape == (20, gram.total * (gram.total + 1) // 2)
    np.testing.assert_allclose(gram.coordinates(products), z, atol=1e-10)


@pytest.mark.parametrize(("shape", "anchors"), CASES, ids=ids)
def test_law_holds_for_rigid_motions_only(shape: np.ndarray, anchors: np.ndarray) -> None:
    gram = Gram(len(shape), all_edges(shape), anchors)
    z = rigid(shape, 20, seed=2)
    np.testing.assert_allclose(gram.products(z) @ gram.F.T, np.tile(gram.S, (20, 1)), atol=1e-10)
    np.testing.assert_allclose(gram.residual(z), 0.0, atol=1e-12)
    bent = z + 0.1 * np.random.default_rng(3).standard_normal(z.shape)
    left = gram.products(bent) @ gram.F.T - gram.S
    np.testing.assert_allclose(left[:, : len(gram.edges)], gram.residual(bent), atol=1e-10)
    np.testing.assert_allclose(left[:, len(gram.edges) :], 0.0, atol=1e-10)
    assert np.min(np.max(np.abs(gram.residual(bent)), axis=1)) > 1e-2


def test_rows_of_the_paper() -> None:
    """Eq. for F of the triangle, without the columns of the second anchor, which the paper does not have."""
    lengths = [(0, 1, 4.0), (0, 2, np.hypot(4.4, 2.0)), (1, 2, np.hypot(0.4, 2.0))]
    gram = Gram(3, lengths, PLANE)
    first_anchor = [k for k, (i, j) in enumerate(zip(*gram.pairs, strict=True)) if j < 4]
    expected = [[1, -2, 0, 0, 1, 0, 0, 0, 0, 0], [1, 0, -2, 0, 0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 1, -2, 0, 1, 0, 0]]
    np.testing.assert_array_equal(gram.F[:3, first_anchor], expected)
    np.testing.assert_array_equal(gram.F[3, first_anchor], [0] * 9 + [1])
    np.testing.assert_allclose(gram.S[:4], [16.0, 4.4**2 + 4.0, 0.16 + 4.0, 32.0])


def test_rows_are_independent() -> None:
    gram = Gram(3, all_edges(TRIANGLE), np.vstack([PLANE, [[1.0, 0.3]]]))
    assert np.linalg.matrix_rank(gram.F) == len(gram.F) == 3 + 6 + 3


def test_reflected_pose_comes_back_reflected() -> None:
    gram = Gram(3, all_edges(TRIANGLE), PLANE)
    mirrored = (TRIANGLE * [-1.0, 1.0]).reshape(1, -1)
    both = np.vstack([TRIANGLE.reshape(1, -1), mirrored])
    np.testing.assert_allclose(gram.coordinates(gram.products(both)), both, atol=1e-10)


def test_recovery_is_stable_under_noise_in_the_products() -> None:
    gram = Gram(3, all_edges(TRIANGLE), PLANE)
    z = rigid(TRIANGLE, 50, seed=4)
    products = gram.products(z)
    for size in (1e-3, 1e-5):
        disturbed = products + size * np.random.default_rng(5).standard_normal(products.shape)
        assert np.sqrt(np.mean((gram.coordinates(disturbed) - z) ** 2)) < size


def test_recovery_minimises_the_anchor_misfit() -> None:
    """The Procrustes turn beats every other turn and mirror image, tried on a fine grid of angles."""
    gram = Gram(3, all_edges(TRIANGLE), PLANE)
    z = rigid(TRIANGLE, 1, seed=6)
    products = gram.products(z) + 0.5 * np.random.default_rng(7).standard_normal((1, 15))
    Q = np.zeros((5, 5))
    Q[gram.pairs] = products[0]
    Q = Q + Q.T - np.diag(np.diag(Q))
    values, vectors = np.linalg.eigh(Q)
    factor = vectors[:, -2:] * np.sqrt(values[-2:])
    found = gram.coordinates(products).reshape(3, 2)

    def misfit(turn: np.ndarray) -> float:
        return float(np.sum((factor[3:] @ turn - PLANE) ** 2))

    turn = np.linalg.lstsq(factor[:3], found, rcond=None)[0]
    np.testing.assert_allclose(turn @ turn.T, np.eye(2), atol=1e-10)
    angles = np.linspace(0.0, 2 * np.pi, 721)
    for angle in angles:
        c, s = np.cos(angle), np.sin(angle)
        assert misfit(turn) <= misfit(np.array([[c, s], [-s, c]])) + 1e-12
        assert misfit(turn) <= misfit(np.array([[c, s], [s, -c]])) + 1e-12


def test_missing_coordinates_give_missing_products() -> None:
    gram = Gram(3, all_edges(TRIANGLE), PLANE)
    z = rigid(TRIANGLE, 1, seed=8)
    z[0, 3] = np.nan
    missing = np.isnan(gram.products(z)[0])
    expected = (gram.pairs[0] == 1) | (gram.pairs[1] == 1)
    np.testing.assert_array_equal(missing, expected)


@pytest.mark.parametrize(("shape", "anchors"), CASES[::2], ids=ids[::2])
def test_noise_moments_equal_sampling(shape: np.ndarray, anchors: np.ndarray) -> None:
    gram = Gram(len(shape), [], anchors)
    z = shape.reshape(1, -1)
    draws = 100_000
    noisy = z + 0.3 * np.random.default_rng(9).standard_normal((draws, z.shape[1]))
    sample = gram.products(noisy)
    bias, variance = gram.product_moments(z, 0.3)
    error = 5 * np.sqrt(variance[0] / draws) + 1e-12
    assert np.all(np.abs(sample.mean(axis=0) - gram.products(z)[0] - bias[0]) <= error)
    np.testing.assert_allclose(sample.var(axis=0), variance[0], rtol=0.03, atol=1e-12)


@pytest.mark.parametrize(("shape", "anchors"), CASES, ids=ids)
def test_jacobian_equals_differences(shape: np.ndarray, anchors: np.ndarray) -> None:
    edges = [*all_edges(shape), (0, len(shape), 1.5)]
    gram = Gram(len(shape), edges, anchors)
    z = rigid(shape, 3, seed=10)
    J = gram.jacobian(z)
    for column in range(z.shape[1]):
        step = np.zeros(z.shape[1])
        step[column] = 1e-6
        difference = (gram.residual(z + step) - gram.residual(z - step)) / 2e-6
        np.testing.assert_allclose(J[:, :, column], difference, atol=1e-7)


@pytest.mark.parametrize(("shape", "anchors"), CASES, ids=ids)
def test_projection_meets_the_lengths(shape: np.ndarray, anchors: np.ndarray) -> None:
    gram = Gram(len(shape), all_edges(shape), anchors)
    bent = rigid(shape, 30, seed=11) + 0.05 * np.random.default_rng(12).standard_normal((30, shape.size))
    projected = gram.project(bent)
    assert np.max(np.abs(gram.residual(projected))) < 1e-10
    assert np.max(np.abs(gram.project(projected) - projected)) < 1e-10


def test_projection_finds_the_nearest_pose() -> None:
    gram = Gram(3, all_edges(TRIANGLE), PLANE)
    bent = (TRIANGLE + 0.1 * np.random.default_rng(13).standard_normal((3, 2))).reshape(1, -1)
    best = optimize.minimize(
        lambda z: np.sum((z - bent[0]) ** 2),
        TRIANGLE.ravel(),
        jac=lambda z: 2 * (z - bent[0]),
        constraints={"type": "eq", "fun": lambda z: gram.residual(z[None])[0], "jac": lambda z: gram.jacobian(z[None])[0]},
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 500},
    )
    np.testing.assert_allclose(gram.project(bent)[0], best.x, atol=1e-6)


def test_edge_to_an_anchor_is_a_distance_from_a_known_point() -> None:
    """A pendulum: one moving point at a fixed distance from a pivot."""
    gram = Gram(1, [(0, 1, 2.0)], np.array([[1.0, 1.0], [0.0, 1.0]]))
    angle = np.linspace(0.0, 6.0, 9)
    z = np.stack([1.0 + 2.0 * np.cos(angle), 1.0 + 2.0 * np.sin(angle)], axis=1)
    np.testing.assert_allclose(gram.products(z) @ gram.F.T, np.tile(gram.S, (9, 1)), atol=1e-12)
    projected = gram.project(1.3 * (z - 1.0) + 1.0)
    np.testing.assert_allclose(projected, z, atol=1e-9)


def test_impossible_lengths_are_reported() -> None:
    gram = Gram(3, [(0, 1, 1.0), (1, 2, 1.0), (0, 2, 5.0)], PLANE)
    with pytest.raises(NumericalError, match="the lengths could not be met"):
        gram.project(TRIANGLE.reshape(1, -1))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, [], PLANE), "points: expected at least 1"),
        ((3, [], PLANE[:1]), "anchors: expected 2 linearly independent known points, got rank 1"),
        ((3, [], [[1.0, 1.0], [2.0, 2.0]]), "got rank 1"),
        ((3, [], np.ones((2, 4))), "anchors: expected 2 or 3 coordinates"),
        ((3, [(0, 7, 1.0)], PLANE), r"edges: expected .* got \(0, 7, 1.0\)"),
        ((3, [(3, 4, 1.0)], PLANE), "edges: expected a moving point"),
        ((3, [(1, 1, 1.0)], PLANE), "edges: expected"),
        ((3, [(0, 1, -1.0)], PLANE), "a length above 0"),
    ],
)
def test_bad_arguments_are_refused_with_advice(arguments: tuple, message: str) -> None:
    with pytest.raises(ConstraintError, match=message):
        Gram(*arguments)
