"""Means of mixtures whose components lie on different branches of a law: between two branches nothing is likely."""

from __future__ import annotations

import numpy as np

SEPARATE = 4.0  # a gap between component means that separates branches, in the components' own standard deviations


def likelier_mean(means: np.ndarray, variances: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(n, C) weighted means of component means (K, n, C), at each point of those on the likelier side of a wide gap.

    ``variances`` (K, n, T) are the components' own, of the outputs, which are the first T columns. Without a gap in any
    output the mean is that of all components.
    """
    count, n, T = variances.shape
    if count == 1:
        return means[0]
    outputs = means[:, :, :T]
    ordered = np.sort(outputs, axis=0)
    own = np.sqrt(np.tensordot(weights, np.maximum(variances, 0.0), axes=1))  # (n, T)
    ratios = np.diff(ordered, axis=0) / np.maximum(own, 1e-300)
    widest = ratios.transpose(1, 0, 2).reshape(n, -1).argmax(axis=1)
    place, output = np.divmod(widest, T)
    points = np.arange(n)
    separate = ratios[place, points, output] > SEPARATE
    below = outputs[:, points, output] <= ordered[place, points, output]  # (K, n)
    side = np.where(weights @ below >= 0.5, below, ~below)
    share = weights[:, None] * np.where(separate, side, True)
    return np.einsum("kn,knc->nc", share, means) / share.sum(axis=0)[:, None]
