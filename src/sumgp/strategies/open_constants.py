"""Unknown constants of a law whose values or intervals say little: warnings that name them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sumgp.errors import warn

OPEN, TIED = 0.5, 0.995  # sd of a constant in units of its prior's, and correlations, above which it is called open
# Sd as a share of the constant's size, and correlation, above which its interval is called rough: it is that of a law
# linearised in its constants. Offset and slope of a line far from zero are tied too, yet both may be known well.
ROUGH_SHARE, ROUGH_TIE = 0.3, 0.97


def warn_of_open_constants(
    names: Sequence[str], mean: np.ndarray, covariance: np.ndarray, prior_sd: np.ndarray
) -> dict[str, Any]:
    """Constants (U,) that data and law leave open, with a warning for each; what the report says of them."""
    sd = np.sqrt(np.maximum(np.diagonal(covariance), np.finfo(float).tiny))
    correlation = np.abs(covariance / np.outer(sd, sd)) - np.eye(len(names))
    open_ = []
    for i, name in enumerate(names):
        other, rough = names[int(np.argmax(correlation[i]))], sd[i] > ROUGH_SHARE * abs(mean[i])
        if sd[i] > OPEN * prior_sd[i]:
            open_.append(
                f"constants: the law and the data leave {name!r} open; its interval rests on the prior. "
                "Measure where it matters, or give its value"
            )
        elif correlation[i, :i].max(initial=0.0) > TIED and rough:
            tied = f"only a combination of {name!r} and {other!r} is determined"
            open_.append(f"constants: {tied}; give the value of one of them")
        elif correlation[i].max() > ROUGH_TIE and rough:
            open_.append(
                f"constants: {name!r} can hardly be distinguished from {other!r}, and its interval is rough; measure over a "
                "longer range, or give the value of one of them"
            )
    for text in open_:
        warn(text)
    return {"open_constants": open_} if open_ else {}
