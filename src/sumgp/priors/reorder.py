"""A prior with its outputs in another order, so that the order they are given in makes no difference to a search."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sumgp.priors.multitask import MultitaskPrior
from sumgp.priors.noise import NoiseModel
from sumgp.priors.tasks import ReorderedTask


@dataclass(frozen=True)
class Reordered:
    """``prior`` over the outputs in another order; entry i of its theta is entry ``index[i]`` of the given one's."""

    prior: MultitaskPrior
    index: np.ndarray

    def there(self, theta: np.ndarray) -> np.ndarray:
        """The reordered prior's theta from the given one's."""
        return theta[self.index]

    def back(self, theta: np.ndarray) -> np.ndarray:
        """The given prior's theta from the reordered one's."""
        result = np.empty_like(theta)
        result[self.index] = theta
        return result


def reordered(prior: MultitaskPrior, order: np.ndarray) -> Reordered:
    """The same prior over the outputs ``order`` (T,), which lists their positions in the given one.

    Terms of one output each are sorted as the outputs are.
    """
    if prior.latent is not None:
        turned = [ReorderedTask(task, np.arange(task.n_parameters)) for task in prior.tasks]
    else:
        turned = [task.reordered(order) for task in prior.tasks]
    places = [-1 if t.task.speaks_of is None else t.task.speaks_of for t in turned]
    terms = sorted(range(len(turned)), key=places.__getitem__)
    index: list[np.ndarray] = []
    for r in terms:
        kernel, task = prior.slices[r]
        index += [np.arange(kernel.start, kernel.stop), task.start + turned[r].places]
    noise, groups = _noise(prior.noise, order)
    if noise.known is None:
        index.append(prior.noise_slice.start + groups)
    result = replace(
        prior,
        kernels=tuple(prior.kernels[r] for r in terms),
        kernel_priors=tuple(prior.kernel_priors[r] for r in terms),
        tasks=tuple(turned[r].task for r in terms),
        noise=noise,
        latent=None if prior.latent is None else prior.latent.reordered(order),
        law=None if prior.law is None else replace(prior.law, F=prior.law.F[:, order]),
    )
    return Reordered(result, np.concatenate(index).astype(int))


def _noise(noise: NoiseModel, order: np.ndarray) -> tuple[NoiseModel, np.ndarray]:
    """The noise of the outputs in that order, and the groups' former positions."""
    place = np.argsort(order)
    groups = [tuple(sorted(place[list(group)].tolist())) for group in noise.groups]
    sequence = sorted(range(len(groups)), key=lambda g: groups[g])
    known = None if noise.known is None else noise.known[:, order]
    moved = replace(noise, groups=tuple(groups[g] for g in sequence), reference=noise.reference[order], known=known)
    return moved, np.array(sequence, dtype=int)


def canonical_order(y: np.ndarray, names: tuple[str, ...], ties: np.ndarray | None = None) -> np.ndarray:
    """(T,) positions of the outputs in an order that does not depend on the given one: by their values, then by name.

    ``y`` (N, T) unit-free with rows in an order of their own; values count to six digits. ``ties`` (T,): numbers that tell
    outputs of equal values apart (all of them never measured, say) before their names do.
    """
    decided = np.zeros(y.shape[1]) if ties is None else np.round(ties, 6)
    rounded = np.round(np.where(np.isnan(y), np.inf, y), 6)
    keys = [
        (np.sort(column).tolist(), column.tolist(), tie, name)
        for column, tie, name in zip(rounded.T, decided, names, strict=True)
    ]
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=int)
