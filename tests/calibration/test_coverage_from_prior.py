"""Intervals on problems whose truth is drawn from the prior: the command's problems are what it says, and are covered."""

from __future__ import annotations

import numpy as np
import pytest

from coverage_from_prior import LEVELS, MISSING, draw_problem, given_the_sum, inside, main
from sumgp.numerics.linear_algebra import schur_condition

PROBLEMS = range(1000, 1024)


def test_drawn_truths_obey_the_law_and_are_measured_with_gaps() -> None:
    drawn = [draw_problem(seed) for seed in PROBLEMS]
    for problem in drawn:
        assert problem.truth.sum(axis=1) == pytest.approx(np.ones(len(problem.truth)), abs=1e-9)
        assert np.all(problem.truth.std(axis=0) > 0)
    missing = np.mean([np.isnan(p.Y) for p in drawn])
    assert missing == pytest.approx(MISSING, abs=0.02)
    gaps = [np.nanstd(p.Y.sum(axis=1)) / np.nanstd(p.Y) for p in drawn]
    assert 0.005 < np.median(gaps) < 0.3, "measured rows miss the law by their noise"


def test_drawn_covariance_is_that_of_the_conditioned_prior() -> None:
    """The package's own conditioning on F f = 1, which the command does not use."""
    M = np.random.default_rng(0).standard_normal((3, 3))
    Sigma = M @ M.T + np.eye(3)
    gain, root = given_the_sum(Sigma)
    expected = schur_condition(Sigma, np.ones((1, 3)), np.zeros(1))
    assert root @ root.T == pytest.approx(expected.covariance, abs=1e-12)
    assert gain == pytest.approx(expected.D[0], rel=1e-12)


def test_intervals_cover_as_stated() -> None:
    """Within three standard errors over 24 problems, whose values are far from independent of each other."""
    shares = np.array([inside(draw_problem(seed), "integrated") for seed in PROBLEMS])
    errors = shares.std(axis=0) / np.sqrt(len(shares))
    assert np.all(errors < 0.04)
    # Narrower intervals than stated are a defect; the project's own bar for wider ones is 97.5 % at 95 %.
    assert np.all(shares.mean(axis=0) > LEVELS - 3.0 * errors)
    assert np.all(shares.mean(axis=0)[:-1] < np.array(LEVELS)[:-1] + 3.0 * errors[:-1])
    assert shares[:, -1].mean() < 0.975


def test_command_prints_both_kinds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--problems", "2", "--first-seed", "1000"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["integrated", "plug-in"]
    expected = np.mean([inside(draw_problem(seed), "plug-in") for seed in (1000, 1001)], axis=0)
    assert f"95%: {expected[-1]:.1%}" in lines[1]
