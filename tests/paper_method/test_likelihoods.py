"""Likelihoods: densities against SciPy and sampling, every derivative against differences, links against inverses."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from scipy import integrate, special, stats
from support.engine_problems import stacked

from sumgp.numerics.quadrature import normal_rule
from sumgp.paper_method.likelihoods import (
    GaussianLikelihood,
    Likelihood,
    LinkedLikelihood,
    NoncentralSquare,
    StackedLikelihood,
    Terms,
    likelihood_of_output,
    likelihood_of_transformed,
    link_of,
)
from sumgp.transforms import Absolute, Affine, Cos, CustomTransform, Exp, Identity, Log, Power, Sin, Square, Tan, Transform

CUBIC = CustomTransform(lambda f: f**3 - 3.0 * f, lambda f: 3.0 * f**2 - 3.0, cuts=(-1.0, 1.0), curvature=lambda f: 6.0 * f)
Y = np.array([0.9, 1.3, -0.6, 0.4])
NOISE = np.array([0.1, 0.3, 0.2, 0.25])
REFERENCE = np.array([0.8, 1.4, -0.7, 0.5])
TRANSFORMS: list[Transform] = [
    Identity(),
    Affine(2.0, 1.0),
    Square(),
    Power(3),
    Power(4),
    Absolute(),
    Exp(),
    Log(),
    Sin(),
    Cos(),
    Tan(),
    CUBIC,
]


def families() -> list[Likelihood]:
    linked = [LinkedLikelihood(Y, NOISE, t, REFERENCE) for t in TRANSFORMS]
    return [
        GaussianLikelihood(Y, NOISE),
        NoncentralSquare(Y, NOISE, REFERENCE),
        LinkedLikelihood(Y, NOISE, Log(), REFERENCE, of_transformed=True),
        stacked([GaussianLikelihood(Y[:1], NOISE[:1]), NoncentralSquare(Y[1:], NOISE[1:], REFERENCE[1:])]),
        *linked,
    ]


LATENT = [np.array([0.7, 1.6, 0.3, 0.15]), np.array([-0.2, 0.02, 0.95, -1.4]), np.array([2.6, -3.1, 1.1, 0.004])]


def moved(likelihood: Likelihood, factor: float) -> Likelihood:
    return likelihood.with_noise(likelihood.noise * np.exp(factor))


def family_name(likelihood: object) -> str:
    """A name that is the same in every process (the text of a function is not)."""
    transform = getattr(likelihood, "transform", None)
    return type(likelihood).__name__ + ("" if transform is None else "-" + transform.label("z"))


@pytest.mark.parametrize("u", LATENT, ids=["inside", "near edges", "beyond"])
@pytest.mark.parametrize("likelihood", families(), ids=family_name)
def test_derivatives_equal_differences(likelihood: Likelihood, u: np.ndarray) -> None:
    terms = likelihood.terms(u)
    step = 1e-6 * np.maximum(np.abs(u), 1e-2)
    up, down = likelihood.terms(u + step), likelihood.terms(u - step)
    louder, quieter = moved(likelihood, 1e-6).terms(u), moved(likelihood, -1e-6).terms(u)

    def by_latent(name: str) -> np.ndarray:
        return (getattr(up, name) - getattr(down, name)) / (2 * step)

    def by_noise(name: str) -> np.ndarray:
        return (getattr(louder, name) - getattr(quieter, name)) / 2e-6

    pairs = [
        (terms.first, by_latent("log_density"), terms.log_density / step),
        (terms.second, by_latent("first"), terms.first / step),
        (terms.curvature_first, by_latent("curvature"), terms.curvature / step),
        (terms.noise, by_noise("log_density"), terms.log_density / 1e-6),
        (terms.first_noise, by_noise("first"), terms.first / 1e-6),
        (terms.curvature_noise, by_noise("curvature"), terms.curvature / 1e-6),
    ]
    for exact, difference, roundoff in pairs:
        bound = 1e-6 * np.abs(exact) + 1e-14 * np.abs(roundoff) + 1e-6 * np.max(np.abs(exact), initial=0.1)
        assert np.all(np.abs(exact - difference) <= bound), (exact, difference)
    assert np.all(terms.curvature >= 0)


@pytest.mark.parametrize("likelihood", families(), ids=family_name)
def test_many_latent_values_per_observation_equal_one_at_a_time(likelihood: Likelihood) -> None:
    grid = np.stack(LATENT, axis=1)
    together = likelihood.terms(grid)
    for k in range(grid.shape[1]):
        alone = likelihood.terms(grid[:, k])
        for field in fields(Terms):
            assert getattr(together, field.name).shape == grid.shape
            np.testing.assert_allclose(getattr(together, field.name)[:, k], getattr(alone, field.name), rtol=1e-13)


@pytest.mark.parametrize("u", [1e-12, 0.01, 0.8, 25.0, 4000.0])
@pytest.mark.parametrize("y", [0.02, -0.7, 3.0, 60.0])
@pytest.mark.parametrize("sd", [0.02, 0.3, 2.0])
def test_noncentral_square_equals_the_bessel_form(u: float, y: float, sd: float) -> None:
    """p = (1/2 s^2) (y'/u)^(-1/4) exp(-(y' + u)/(2 s^2)) I_-1/2(sqrt(y' u)/s^2), with the scaled Bessel function."""
    square, argument = y**2, np.sqrt(y**2 * u) / sd**2
    scaled = special.ive(-0.5, argument)
    expected = -np.log(2 * sd**2) - 0.25 * np.log(square / u) - (square + u) / (2 * sd**2) + argument + np.log(scaled)
    got = NoncentralSquare(np.array([y]), np.array([sd]), np.array([y])).terms(np.array([u])).log_density[0]
    assert got == pytest.approx(expected, rel=1e-10, abs=1e-10)


def test_noncentral_square_equals_scipy_and_integrates_to_one() -> None:
    sd, u = 0.4, 0.5
    y = np.array([0.1, 0.6, 1.5])
    got = NoncentralSquare(y, np.full(3, sd), y).terms(np.full(3, u)).log_density
    np.testing.assert_allclose(got, stats.ncx2.logpdf(y**2, 1, u / sd**2, scale=sd**2), rtol=1e-9)

    def density_of_y(y: float) -> float:  # in y > 0, which takes the pole of the density of y' at 0 away
        likelihood = NoncentralSquare(np.array([y]), np.array([sd]), np.array([y]))
        return 2 * y * float(np.exp(likelihood.terms(np.array([u])).log_density[0]))

    total, _ = integrate.quad(density_of_y, 0.0, 5.0)
    assert total == pytest.approx(1.0, abs=1e-8)


def test_curvature_of_the_square_is_close_to_its_fisher_information() -> None:
    z, w = np.polynomial.hermite_e.hermegauss(100)
    w = w / w.sum()
    for u in (0.0, 0.05, 0.3, 1.0, 5.0):
        sd = 0.5
        y = np.sqrt(u) + sd * z
        terms = NoncentralSquare(y, np.full(100, sd), y).terms(np.full(100, u))
        fisher = w @ terms.first**2
        assert 0.88 <= terms.curvature[0] / fisher <= 1.0 + 1e-9


def test_square_goes_on_below_zero_with_continuous_score() -> None:
    likelihood = NoncentralSquare(Y, NOISE, REFERENCE)
    above, below = likelihood.terms(np.full(4, 1e-12)), likelihood.terms(np.full(4, -1e-12))
    np.testing.assert_allclose(above.log_density, below.log_density, rtol=1e-8)
    np.testing.assert_allclose(above.first, below.first, rtol=1e-8)
    np.testing.assert_allclose(above.curvature, below.curvature, rtol=1e-8)
    far = likelihood.terms(np.full(4, -2.0))
    np.testing.assert_allclose(far.first, (Y**2 - NOISE**2 + 2.0) / (2 * NOISE**4))


@pytest.mark.parametrize("transform", TRANSFORMS, ids=lambda t: t.label("z"))
def test_link_is_the_inverse_inside_the_image(transform: Transform) -> None:
    """Away from turning points the smoothing changes the inverse by less than a thousandth of the noise."""
    f = np.array([0.45, 0.6, 0.5, 0.7, -0.55]) if transform.domain[0] == -np.inf else np.array([0.4, 0.9, 2.0])
    sd = np.full(f.shape, 0.05)
    link = link_of(transform, 1.0).evaluate(transform.value(f), sd, transform.branch_of(f))
    np.testing.assert_allclose(link.value, f, atol=1e-3 * 0.05)


@pytest.mark.parametrize("transform", [Square(), Sin(), Cos(), Power(4), CUBIC, Exp()], ids=lambda t: t.label("z"))
@pytest.mark.parametrize("branch", [-1, 0, 1, 2])
def test_link_is_monotone_and_finite_far_beyond_the_image(transform: Transform, branch: int) -> None:
    lowest, highest = {Square: (-1, 0), Power: (-1, 0), CustomTransform: (0, 2), Exp: (0, 0)}.get(type(transform), (-9, 9))
    branch = min(max(branch, lowest), highest)
    # Dense around every place where a link bends: turning values, ends of the mirrored piece, starts of tangents.
    bends = np.array([0.0, 1e-3, 1.0, -1.0, 2.0, -2.0, 1.999, -1.999])
    distances = np.geomspace(1e-8, 6.0, 2000)
    u = np.unique(np.concatenate([bends, *(b + s * distances for b in bends for s in (-1.0, 1.0))]))
    link = link_of(transform, 1.0).evaluate(u, np.full(u.shape, 0.2), np.full(u.shape, branch))
    steps = np.diff(link.value)
    assert np.all(np.isfinite(link.value))
    roundoff = 4 * np.finfo(float).eps * np.max(np.abs(link.value))
    assert np.all(steps > -roundoff) or np.all(steps < roundoff)
    assert len(np.unique(np.sign(link.first))) == 1
    # A jump anywhere would show as a difference between the steps and the integrated slope.
    integrated = 0.5 * (link.first[1:] + link.first[:-1]) * np.diff(u)
    assert np.max(np.abs(steps - integrated)) <= 2e-5


def test_square_link_is_the_smooth_odd_root() -> None:
    sd, u = 0.3, np.array([-0.4, 1e-3, 0.7])
    width = 0.1 * sd**2
    link = link_of(Square(), 1.0).evaluate(u, np.full(3, sd), np.array([0, -1, -1]))
    np.testing.assert_allclose(link.value, np.array([1, -1, -1]) * u / (u**2 + width**2) ** 0.25, rtol=1e-14)


def test_square_seen_through_the_branch_of_the_reference() -> None:
    likelihood = likelihood_of_output(np.array([-0.9, 0.9]), np.full(2, 0.1), Square(), np.array([-0.5, -0.5]))
    terms = likelihood.terms(np.full(2, 0.81))
    expected = stats.norm.logpdf([-0.9, 0.9], -0.9, 0.1)
    np.testing.assert_allclose(terms.log_density, expected, rtol=1e-5)


def test_change_of_variables_gives_the_density_of_the_transformed_value() -> None:
    """Probability of log y in a bin, by sampling, against the integral of the density."""
    rng = np.random.default_rng(0)
    f, sd = 1.4, 0.2
    sample = np.log(f + sd * rng.standard_normal(400_000))
    edges = np.linspace(0.0, 0.7, 8)
    share = np.histogram(sample, edges)[0] / len(sample)
    grid = np.linspace(0.0, 0.7, 7 * 200 + 1)
    likelihood = likelihood_of_transformed(np.exp(grid), np.full(grid.shape, sd), Log(), np.full(grid.shape, f))
    density = np.exp(likelihood.terms(np.full(grid.shape, np.log(f))).log_density)
    expected = [
        integrate.trapezoid(density[k * 200 : (k + 1) * 200 + 1], grid[k * 200 : (k + 1) * 200 + 1]) for k in range(7)
    ]
    assert np.max(np.abs(share - expected)) < 5 * np.sqrt(0.25 / len(sample))


def test_values_outside_the_domain_are_used_as_y_and_dropped_as_transformed() -> None:
    y, noise, reference = np.array([0.5, -0.1, 0.0]), np.full(3, 0.2), np.array([0.5, 0.1, 0.1])
    of_output = likelihood_of_output(y, noise, Log(), reference)
    of_transformed = likelihood_of_transformed(y, noise, Log(), reference)
    assert of_output.n_dropped == 0
    assert of_transformed.n_dropped == 2
    u = np.array([-0.5, -2.0, -2.0])
    assert np.all(of_output.terms(u).curvature > 0)
    for field in fields(Terms):
        np.testing.assert_array_equal(getattr(of_transformed.terms(u), field.name)[1:], 0.0)
    for sites in (of_transformed.moment_sites(), of_output.moment_sites(), of_output.plain_sites()):
        assert np.all(np.isinf(sites.variances[1:]))
        assert np.isfinite(sites.variances[0])
        assert np.all(np.isfinite(sites.targets))


@pytest.mark.parametrize("transform", [t for t in TRANSFORMS if not isinstance(t, Tan)], ids=lambda t: t.label("z"))
def test_matched_moments_equal_sampling(transform: Transform) -> None:
    rng = np.random.default_rng(1)
    reference, noise, y = np.array([0.7, 1.6, 1.1]), np.array([0.1, 0.2, 0.05]), np.array([0.8, 1.5, 1.0])
    sites = LinkedLikelihood(y, noise, transform, reference).moment_sites()
    sample = transform.value(reference[:, None] + noise[:, None] * rng.standard_normal((3, 200_000)))
    bias = sample.mean(axis=1) - transform.value(reference)
    sd = sample.std(axis=1)
    error = 4 * sd / np.sqrt(200_000)
    # With r = noise/reference, sd(log) = r (1 + 5/4 r^2 + ...) and the delta method gives r (1 + 1/4 r^2).
    order = (noise / reference) ** 2 if isinstance(transform, Log) else 0.0
    assert np.all(np.abs(transform.value(y) - bias - sites.targets) <= error + 0.3 * order * sd)
    assert np.all(np.abs(np.sqrt(sites.variances) - sd) <= (0.01 + order) * sd)


def test_matched_moments_of_the_square_in_closed_form() -> None:
    sites = NoncentralSquare(Y, NOISE, REFERENCE).moment_sites()
    np.testing.assert_allclose(sites.targets, Y**2 - NOISE**2, rtol=1e-12)
    np.testing.assert_allclose(sites.variances, 4 * REFERENCE**2 * NOISE**2 + 2 * NOISE**4, rtol=1e-8)


@pytest.mark.parametrize("transform", TRANSFORMS, ids=lambda t: t.label("z"))
def test_site_derivatives_by_noise_equal_differences(transform: Transform) -> None:
    positive = np.array([0.9, 1.3, 0.6, 0.4])
    likelihood = likelihood_of_output(positive, 0.3 * NOISE, transform, np.array([0.8, 1.4, 0.7, 0.5]))
    for sites in ("moment_sites", "plain_sites"):
        here = getattr(likelihood, sites)()
        up, down = getattr(moved(likelihood, 1e-5), sites)(), getattr(moved(likelihood, -1e-5), sites)()
        np.testing.assert_allclose(here.targets_noise, (up.targets - down.targets) / 2e-5, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(here.variances_noise, (up.variances - down.variances) / 2e-5, rtol=1e-6, atol=1e-9)


def test_identity_gives_the_plain_gaussian() -> None:
    for factory in (likelihood_of_output, likelihood_of_transformed):
        assert isinstance(factory(Y, NOISE, Identity(), REFERENCE), GaussianLikelihood)
    linked = LinkedLikelihood(Y, NOISE, Identity(), REFERENCE).terms(LATENT[0])
    plain = GaussianLikelihood(Y, NOISE).terms(LATENT[0])
    for field in fields(Terms):
        np.testing.assert_allclose(getattr(linked, field.name), getattr(plain, field.name), rtol=1e-12)


def test_stacked_parts_keep_their_places() -> None:
    from sumgp.paper_method.likelihoods import StackedLikelihood

    part = GaussianLikelihood(Y, NOISE)
    mixed = StackedLikelihood((part, part), (np.array([0, 2, 4, 6]), np.array([1, 3, 5, 7])))
    np.testing.assert_array_equal(mixed.noise[::2], NOISE)
    np.testing.assert_array_equal(mixed.terms(np.repeat(LATENT[0], 2)).first[1::2], part.terms(LATENT[0]).first)


@pytest.mark.parametrize("mean", [-0.3, 0.02, 0.4, 9.0])
@pytest.mark.parametrize("transform", [Square(), Sin(), Log()], ids=lambda t: t.label("z"))
def test_quadrature_resolves_the_kinks(transform: Transform, mean: float) -> None:
    """Expected log density and score under a normal marginal, against adaptive integration split at the kinks."""
    mean, sd = (mean, 0.25) if not isinstance(transform, Log) else (min(mean, 1.0), 0.25)
    likelihood = LinkedLikelihood(np.array([0.6]), np.array([0.2]), transform, np.array([0.5]))
    u, log_weights = normal_rule(np.array([mean]), np.array([sd]), likelihood.kinks, 64)
    weights = np.exp(log_weights)
    assert weights.sum() == pytest.approx(1.0, abs=1e-12)
    cuts = [c for c in (-1.0, 0.0, 1.0, 2.0) if abs(c - mean) < 8 * sd]
    for name in ("log_density", "first"):
        exact, _ = integrate.quad(
            lambda x, name=name: float(getattr(likelihood.terms(np.array([x])), name)[0] * stats.norm.pdf(x, mean, sd)),
            mean - 9 * sd,
            mean + 9 * sd,
            points=cuts or None,
            limit=1000,
            epsabs=1e-12,
            epsrel=1e-12,
        )
        assert float(np.sum(weights * getattr(likelihood.terms(u), name))) == pytest.approx(exact, rel=2e-7, abs=2e-7)


def test_kinks_of_stacked_parts_are_padded() -> None:
    parts: list[Likelihood] = [
        GaussianLikelihood(Y[:1], NOISE[:1]),
        LinkedLikelihood(Y[:2], NOISE[:2], Sin(), REFERENCE[:2]),
        NoncentralSquare(Y[:1], NOISE[:1], REFERENCE[:1]),
    ]
    kinks = stacked(parts).kinks
    np.testing.assert_array_equal(kinks, [[np.nan, np.nan], [-1.0, 1.0], [-1.0, 1.0], [0.0, np.nan]])


def test_terms_that_are_not_gaussian_keep_their_values_when_taken_out() -> None:
    y, noise = np.array([0.4, -1.1, 0.9, 1.6]), np.array([0.1, 0.2, 0.3, 0.15])
    linked, plain = LinkedLikelihood(y, noise, Square(), y), GaussianLikelihood(y + 1.0, 2.0 * noise)
    together = StackedLikelihood((linked, plain), (np.array([6, 0, 3, 1]), np.array([2, 4, 5, 7])))
    where, rest = together.without_gaussian()
    np.testing.assert_array_equal(where, [0, 1, 3, 6])
    u = np.linspace(0.1, 2.0, 8)
    for field in fields(Terms):
        np.testing.assert_array_equal(
            getattr(rest.terms(u[where]), field.name), getattr(together.terms(u), field.name)[where]
        )
    np.testing.assert_array_equal(rest.noise, together.noise[where])
    none, empty = stacked([plain, plain]).without_gaussian()
    assert (len(none), empty.size) == (0, 0)
