"""Many draws of hyperparameters whose posterior density given the data is known, because it costs little."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sumgp.hyperparameters.objective import REFUSED, Objective
from sumgp.hyperparameters.optimise import MapEstimate
from sumgp.hyperparameters.proposal import Proposal
from sumgp.hyperparameters.weights import flattened, log_total, tempered

TAIL = 30.0  # a log density so far below the highest, and a bit more for each parameter, weighs nothing
FEWEST = 8  # draws of a proposal
COUNTED = 0.02  # candidates of a smaller share are not proposed again
SEEN = 12.0  # effective draws that moments are taken of, or two a parameter if that is more


class Pool:
    """Draws of all candidates, from proposals at their maxima and later ones that follow what was learnt.

    ``thetas`` and ``owners``: hyperparameters and candidate of each draw. ``log_weights``: log of the posterior density
    given the data over how often the draw was to be expected, all proposals of its candidate together.
    """

    def __init__(
        self, objectives: Sequence[Objective], maxima: Sequence[MapEstimate], curvatures: Sequence[np.ndarray], seed: int
    ) -> None:
        self.objectives = objectives
        self.first = [Proposal.around(m.theta, H) for m, H in zip(maxima, curvatures, strict=True)]
        self.thetas: list[np.ndarray] = []
        self.owners = np.zeros(0, dtype=int)
        self.log_weights = np.zeros(0)
        self._values = np.zeros(0)
        self._proposals: list[list[tuple[Proposal, int]]] = [[] for _ in objectives]
        self._seed = seed
        self._rounds = 0

    def begin(self, size: int) -> None:
        """About ``size`` draws around the maxima, shared equally by the candidates."""
        self._extend({k: (proposal, size / len(self.first)) for k, proposal in enumerate(self.first)})

    def follow(self, log_score: np.ndarray, size: int) -> None:
        """About ``size`` draws more, from the moments of the present ones weighted by data and ``log_score``."""
        target = self.log_weights + log_score
        whole = log_total(target)
        chosen: dict[int, tuple[Proposal, float]] = {}
        for k, first in enumerate(self.first):
            own = np.flatnonzero(self.owners == k)
            share = float(np.exp(log_total(target[own]) - whole)) if np.isfinite(whole) else 0.0
            if share > COUNTED:
                weights, _ = flattened(target[own], max(SEEN, 2.0 * len(first.mean)))
                chosen[k] = Proposal.of_moments(self.of(k), weights, first.scale), size * share
        self._extend(chosen)

    def of(self, candidate: int) -> np.ndarray:
        """(n, p) hyperparameters of a candidate's draws, in the order of the pool."""
        return np.stack([self.thetas[i] for i in np.flatnonzero(self.owners == candidate)])

    def picked(self, log_weights: np.ndarray, count: int, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """How often each draw is picked by systematic sampling, and how often it was to be expected.

        Draws are lined up by candidate and first parameter (a lengthscale), so that picks are spread over both; in the
        order of a Sobol sequence equal strides would pick a pattern.
        """
        weights, _ = tempered(log_weights)
        order = np.lexsort((np.array([theta[0] for theta in self.thetas]), self.owners))
        ends = np.floor(np.cumsum(weights[order]) * count + generator.uniform()).astype(int)
        counts = np.zeros(len(weights), dtype=int)
        counts[order] = np.diff(ends, prepend=0)
        return counts, count * weights

    def _extend(self, chosen: dict[int, tuple[Proposal, float]]) -> None:
        for k, (proposal, size) in chosen.items():
            count = 1 << max(int(size).bit_length() - 1, int(FEWEST).bit_length() - 1)  # Sobol points come in powers of two
            sample = proposal.sample(count, np.random.default_rng([self._seed, self._rounds, k]))
            low, high = np.array(self.objectives[k].prior.bounds()).reshape(-1, 2).T
            inside = np.all((sample >= low) & (sample <= high), axis=1)
            values = [self.objectives[k].value(theta) if ok else REFUSED for theta, ok in zip(sample, inside, strict=True)]
            self.thetas.extend(sample)
            self.owners = np.append(self.owners, np.full(count, k))
            self._values = np.append(self._values, values)
            self._proposals[k].append((proposal, count))
        self._rounds += 1
        self.log_weights = np.full(len(self.owners), -np.inf)
        for k in np.unique(self.owners):
            own = np.flatnonzero(self.owners == k)
            thetas, known = self.of(k), self._values[own]
            expected = np.logaddexp.reduce([p.log_density(thetas) + np.log(n) for p, n in self._proposals[k]])
            near = known < min(REFUSED, float(known.min()) + TAIL + thetas.shape[1])
            self.log_weights[own[near]] = -known[near] - expected[near]
