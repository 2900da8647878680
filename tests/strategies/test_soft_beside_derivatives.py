"""Laws that hold nearly beside derivatives that hold exactly."""

import numpy as np
import pytest

import sumgp
from sumgp.errors import DataError

MOTION, ENERGY = "d(z, t) = v", "k/2*z**2 + m/2*v**2 = E"
CONSTANTS = {"k": 1.0, "m": 1.0, "E": 0.5}
DRIFT, NOISE = 0.15, 0.01


def swing(t: np.ndarray) -> np.ndarray:
    """(n, 2) position and velocity of a swing whose amplitude, and so its energy, comes and goes."""
    amplitude = 1.0 + DRIFT * np.sin(0.9 * t)
    return np.hstack([amplitude * np.sin(t), 0.9 * DRIFT * np.cos(0.9 * t) * np.sin(t) + amplitude * np.cos(t)])


def fitted(laws: list[str]) -> sumgp.ConstrainedGP:
    t = np.linspace(0.0, 10.0, 20)[:, None]
    Y = swing(t) + NOISE * np.random.default_rng(1000).standard_normal((20, 2))
    constants = CONSTANTS if len(laws) > 1 else None
    return sumgp.ConstrainedGP(
        laws, outputs=["z", "v"], inputs=["t"], constants=constants, uncertainty="plug-in"
    ).fit(t, Y)  # fmt: skip


@pytest.fixture(scope="module")
def soft() -> sumgp.ConstrainedGP:
    return fitted([MOTION, ENERGY + " +- unknown"])


AT = np.linspace(0.3, 9.7, 41)[:, None]


def test_the_soft_law_stays_soft(soft: sumgp.ConstrainedGP) -> None:
    """Imposed exactly its residual would be zero; the energy drifts by a quarter."""
    assert np.abs(soft.posterior(AT).residual()[:, 1]).max() > 0.1


def test_the_derivative_holds_exactly(soft: sumgp.ConstrainedGP) -> None:
    post, h = soft.posterior(AT), 1e-3
    slope = (soft.predict(AT + h)[:, 0] - soft.predict(AT - h)[:, 0]) / (2 * h)
    np.testing.assert_allclose(np.asarray(post.derivative("z", "t").mean).ravel(), post.mean[:, 1], atol=1e-9)
    np.testing.assert_allclose(slope, post.mean[:, 1], atol=1e-5)


def test_an_error_of_the_law_costs_no_accuracy(soft: sumgp.ConstrainedGP) -> None:
    """The energy varies faster than the outputs: an error as smooth as these could not follow it (0.04 and 0.08)."""
    alone = fitted([MOTION])
    for gp, allowed in ((alone, NOISE), (soft, NOISE)):
        assert np.sqrt(np.mean((gp.predict(AT) - swing(AT)) ** 2)) < allowed


@pytest.mark.parametrize("end", ["+- unknown", "+- 0.2"])
def test_errors_survive_the_split_into_exact_and_soft_rows(end: str) -> None:
    from sumgp.laws import FormulaConstraint, split_law

    law = FormulaConstraint([MOTION, f"{ENERGY} {end}", "z + v = 1"], CONSTANTS).bind(["z", "v"], ["t"])
    split = split_law(law)
    assert split is not None
    assert split.rest is not None
    np.testing.assert_array_equal(split.rest.noise, [0.2 if end == "+- 0.2" else np.nan, 0.0])


def test_the_error_of_a_derivative_cannot_be_estimated() -> None:
    with pytest.raises(DataError, match="needs at least 5 rows"):
        fitted([MOTION + " +- unknown", ENERGY])
