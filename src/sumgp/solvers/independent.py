"""Outputs that have nothing in common, given the data: each in a weight space of its own, seen as one of all outputs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from sumgp.priors import MultitaskPrior
from sumgp.solvers.kronecker import are_independent, output_alone
from sumgp.solvers.weights import AtPoints, FeatureMap, TermFeatures, WeightPosterior, build_features, condition_on_data

MANY_VALUES = 200  # of the data: with fewer, all outputs together cost little


@dataclass(frozen=True)
class IndependentOutputs:
    """The posteriors of the outputs, of one column each. Their roots stand on the diagonal of one root of all weights."""

    outputs: tuple[WeightPosterior, ...]

    @cached_property
    def features(self) -> FeatureMap:
        """Of all outputs: the terms of each in turn."""
        T, terms = len(self.outputs), []
        for t, output in enumerate(self.outputs):
            terms += [replace(term, B=np.eye(T)[:, [t]] * term.B) for term in _terms(output)]
        return FeatureMap(tuple(terms), None, T)

    @cached_property
    def _weights(self) -> list[slice]:
        ends = np.cumsum([0, *(len(output.mean) for output in self.outputs)])
        return [slice(start, end) for start, end in pairwise(ends)]

    def at(self, x: np.ndarray, x_law: np.ndarray) -> AtPoints:
        """The posterior at x, the left-over included."""
        mean, root = self.carried(x, x_law)
        phis = [term.phi(x) for output in self.outputs for term in _terms(output)]
        return AtPoints(mean, root, self.features.left_over(x, phis), phis)

    def carried(self, x: np.ndarray, x_law: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean (n, T) and root (n, T, weights): all there is at points the features were built on."""
        n, T = len(x), len(self.outputs)
        mean, root = np.zeros((n, T)), np.zeros((n, T, self._weights[-1].stop))
        for t, (output, own) in enumerate(zip(self.outputs, self._weights, strict=True)):
            mean[:, [t]], root[:, [t], own] = output.carried(x, x_law)
        return mean, root

    def between(self, root: np.ndarray) -> np.ndarray:
        """(nT, nT) covariance between points with this root."""
        n, T, _ = root.shape
        P = np.zeros((n, T, n, T))
        for t, own in enumerate(self._weights):
            P[:, t, :, t] = root[:, t, own] @ root[:, t, own].T
        return P.reshape(n * T, n * T)

    def differentiated(self, order: tuple[int, ...], x_scale: np.ndarray) -> IndependentOutputs:
        """The derivatives of all columns."""
        return IndependentOutputs(tuple(output.differentiated(order, x_scale) for output in self.outputs))


def _terms(output: WeightPosterior) -> tuple[TermFeatures, ...]:
    assert isinstance(output.features, FeatureMap)
    return output.features.terms


def are_apart(prior: MultitaskPrior) -> bool:
    """Whether outputs have nothing in common, not even constants or errors of a law."""
    return not len(prior.unknown) + len(prior.soft) and are_independent(prior)


def independent_outputs(
    prior: MultitaskPrior, theta: np.ndarray, points: np.ndarray, x: np.ndarray, x_law: np.ndarray, y: np.ndarray
) -> IndependentOutputs:
    """Each output of y (N, T) given its own values alone, exact at ``points``."""
    outputs, rows = [], np.arange(len(y))
    for t in range(prior.n_outputs):
        own, places = output_alone(prior, t, rows)
        features = build_features(own, theta[places], points)
        outputs.append(condition_on_data(own, theta[places], features, x, x_law, y[:, [t]]))
    return IndependentOutputs(tuple(outputs))
