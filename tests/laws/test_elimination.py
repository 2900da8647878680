"""Differential laws that have a potential, and those that have none."""

import time

import numpy as np
import pytest

from sumgp.laws.elimination import Potential, find_potential

Row = dict[tuple[int, tuple[int, ...]], float]  # (output, multi-index) -> coefficient


def operator(rows: list[Row], n_outputs: int) -> tuple[np.ndarray, np.ndarray]:
    exponents = sorted({index for row in rows for _, index in row})
    coefficients = np.zeros((len(rows), n_outputs, len(exponents)))
    for r, row in enumerate(rows):
        for (output, index), value in row.items():
            coefficients[r, output, exponents.index(index)] += value
    return np.array(exponents), coefficients


X2, Y2 = (1, 0), (0, 1)
X3, Y3, Z3 = (1, 0, 0), (0, 1, 0), (0, 0, 1)

# name: (rows, outputs, degree of G, latent functions)
WITH_POTENTIAL = {
    "position and velocity": ([{(0, (1,)): 1, (1, (0,)): -1}], 2, 1, 1),
    "position, velocity, acceleration": (
        [{(0, (1,)): 1, (1, (0,)): -1}, {(1, (1,)): 1, (2, (0,)): -1}],
        3,
        2,
        1,
    ),
    "divergence in 2-D": ([{(0, X2): 1, (1, Y2): 1}], 2, 1, 1),
    "divergence in 3-D": ([{(0, X3): 1, (1, Y3): 1, (2, Z3): 1}], 3, 1, 3),
    "curl in 2-D": ([{(1, X2): 1, (0, Y2): -1}], 2, 1, 1),
    "curl in 3-D": (
        [{(2, Y3): 1, (1, Z3): -1}, {(0, Z3): 1, (2, X3): -1}, {(1, X3): 1, (0, Y3): -1}],
        3,
        1,
        1,
    ),
    "continuity": ([{(0, X2): 1, (1, Y2): 1.7}], 2, 1, 1),
    "stress in balance (Airy)": ([{(0, X2): 1, (2, Y2): 1}, {(2, X2): 1, (1, Y2): 1}], 3, 2, 1),
    "heat with a source": ([{(0, X2): 1, (0, (0, 2)): -0.3, (1, (0, 0)): -1}], 2, 2, 1),
    "forced oscillator": ([{(0, (2,)): 2.0, (0, (1,)): 0.4, (0, (0,)): 30.0, (1, (0,)): -1}], 2, 2, 1),
}
WITHOUT = {
    "free oscillator": ([{(0, (2,)): 1, (0, (0,)): 1}], 1),
    "free oscillator of first order": ([{(0, (1,)): 1, (1, (0,)): -1}, {(1, (1,)): 1, (0, (0,)): 1}], 2),
    "Helmholtz": ([{(0, (2, 0)): 1, (0, (0, 2)): 1, (0, (0, 0)): 4.0}], 1),
    "Cauchy-Riemann": ([{(0, X2): 1, (1, Y2): -1}, {(0, Y2): 1, (1, X2): 1}], 2),
    "heat": ([{(0, X2): 1, (0, (0, 2)): -0.3}], 1),
    "differing by a constant": ([{(0, (1,)): 1, (1, (1,)): -1}], 2),  # (1, 1) g would differ by nothing
}


def violated(exponents: np.ndarray, R: np.ndarray, found: Potential) -> float:
    """Largest coefficient of the product of both matrices of polynomials."""
    total: dict[tuple[int, ...], np.ndarray] = {}
    for m, a in enumerate(exponents):
        for n, b in enumerate(found.exponents):
            key = tuple((a + b).tolist())
            total[key] = total.get(key, 0.0) + R[:, :, m] @ found.coefficients[:, :, n]
    return max(float(np.abs(part).max()) for part in total.values())


@pytest.mark.parametrize("name", WITH_POTENTIAL)
def test_textbook_systems_with_a_potential(name):
    rows, n_outputs, degree, latent = WITH_POTENTIAL[name]
    exponents, R = operator(rows, n_outputs)
    begin = time.process_time()
    found = find_potential(exponents, R)
    assert time.process_time() - begin < 0.2
    assert found is not None
    assert (found.degree, found.n_latent) == (degree, latent)
    assert violated(exponents, R, found) < 1e-13 * np.abs(R).max() * np.abs(found.coefficients).max()


@pytest.mark.parametrize("name", WITHOUT)
def test_textbook_systems_without_one(name):
    rows, n_outputs = WITHOUT[name]
    begin = time.process_time()
    assert find_potential(*operator(rows, n_outputs)) is None
    assert time.process_time() - begin < 0.2


def test_units_do_not_matter():
    """A stiff spring in kilometres and microseconds is the same law."""
    scale, step = np.array([1e3, 1e-6]), 1e-6
    exponents, R = operator([{(0, (2,)): 2.0, (0, (1,)): 0.4, (0, (0,)): 30.0, (1, (0,)): -1}], 2)
    changed = R / scale[None, :, None] / step ** exponents[:, 0]
    plain, found = find_potential(exponents, R), find_potential(exponents, changed)
    assert found is not None
    assert plain is not None
    assert np.array_equal(found.exponents, plain.exponents)
    expected = plain.scaled(1.0 / scale, np.array([step]))
    rescaled = found.coefficients / np.abs(found.coefficients).max()
    assert np.allclose(np.abs(rescaled), np.abs(expected.coefficients), rtol=1e-10)


def test_outputs_outside_the_law_are_free():
    found = find_potential(*operator([{(0, (1,)): 1, (1, (0,)): -1}], 3))
    assert found is not None
    assert found.n_latent == 2
    alone = found.coefficients[:, np.any(found.coefficients[2] != 0, axis=1)]
    assert np.count_nonzero(alone) == 1


def test_algebraic_rows_are_eliminated_with_the_others():
    """a + b = c beside d(a, t) = b."""
    exponents, R = operator([{(0, (0,)): 1, (1, (0,)): 1, (2, (0,)): -1}, {(0, (1,)): 1, (1, (0,)): -1}], 3)
    found = find_potential(exponents, R)
    assert found is not None
    assert (found.degree, found.n_latent) == (1, 1)
    assert violated(exponents, R, found) < 1e-13


def test_a_free_output_beside_a_law_without_potential_is_no_potential():
    assert find_potential(*operator([{(0, (2,)): 1, (0, (0,)): 1}], 2)) is None
