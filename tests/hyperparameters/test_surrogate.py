"""Guesses of the law's evidence: exact functions are found again, guesses stay within bounds."""

from __future__ import annotations

import numpy as np

from sumgp.hyperparameters.average import HIGHEST, MOST, guessed


def test_a_parabola_is_found_from_some_of_its_values() -> None:
    generator = np.random.default_rng(0)
    places = generator.normal(0.0, 1.0, (128, 3))
    truth = 3.0 * places[:, 0] - places[:, 1] ** 2 + places[:, 0] * places[:, 2]
    guess = guessed(places[:48], truth[:48], places[48:])
    inside = np.all(np.abs(places[48:]) < 1.5, axis=1)
    assert np.sqrt(np.mean((guess - truth[48:])[inside] ** 2)) < 0.2 * truth.std()


def test_known_values_come_back() -> None:
    generator = np.random.default_rng(1)
    places = generator.normal(0.0, 1.0, (12, 6))
    values = 5.0 * np.sin(places[:, 0]) - 20.0
    assert np.max(np.abs(guessed(places, values, places) - values)) < 0.3


def test_a_failure_does_not_spoil_its_neighbours() -> None:
    """One value a million below the others, as hyperparameters have under which the law cannot be imposed."""
    generator = np.random.default_rng(2)
    places = generator.normal(0.0, 1.0, (40, 4))
    values = 2.0 * places[:, 0]
    values[7] = -1e6
    others = generator.normal(0.0, 0.7, (30, 4))
    assert np.sqrt(np.mean((guessed(places, values, others) - 2.0 * others[:, 0]) ** 2)) < 1.0


def test_no_guess_is_far_above_what_was_seen() -> None:
    places = np.linspace(-1.0, 1.0, 9)[:, None]
    values = 10.0 * places[:, 0]
    assert np.max(guessed(places, values, np.linspace(-9.0, 9.0, 50)[:, None])) <= 10.0 + HIGHEST


def test_very_many_values_are_no_burden() -> None:
    generator = np.random.default_rng(3)
    places = generator.normal(0.0, 1.0, (4 * MOST, 2))
    values = -np.sum(places**2, axis=1)
    asked = generator.normal(0.0, 0.5, (20, 2))
    np.testing.assert_allclose(guessed(places, values, asked), -np.sum(asked**2, axis=1), atol=0.2)
