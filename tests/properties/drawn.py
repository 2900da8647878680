"""How hypothesis draws problems: the shape is drawn, the numbers come from its seed."""

from __future__ import annotations

import numpy as np
from hypothesis import Phase, settings
from hypothesis import strategies as st
from properties.problems import BUILDERS, Problem, Shape, build

KINDS = tuple(BUILDERS)
LAWS = tuple(kind for kind in KINDS if kind != "none")


@st.composite
def problems(
    draw: st.DrawFn,
    kinds: tuple[str, ...] = KINDS,
    most_rows: int = 60,
    most_outputs: int = 8,
    missing: tuple[float, ...] = (0.0, 0.2, 0.5, 0.95),
    noise: tuple[float, ...] = (1e-4, 1e-2, 0.1),
) -> Problem:
    """A problem of one of the kinds with T = 1..8, N = 1..most_rows, D = 1..3, a share of missing entries, repetitions."""
    kind = draw(st.sampled_from(kinds))
    fewest = {"none": 1, "linear": 1}.get(kind, 2)
    return build(
        Shape(
            kind=kind,
            n_outputs=draw(st.integers(fewest, min(most_outputs, 8 if kind in ("none", "linear") else 6))),
            n_rows=draw(st.integers(1, most_rows)),
            n_inputs=draw(st.integers(1, 3)),
            missing=draw(st.sampled_from(missing)),
            repeated=draw(st.booleans()),
            noise=draw(st.sampled_from(noise)),
            seed=draw(st.integers(1000, 2**31)),
        )
    )


def powers_of_two(count: int, largest: int = 40) -> st.SearchStrategy[np.ndarray]:
    """(count,) units from 1e-12 to 1e12 that change no digit of a number."""
    return st.lists(st.integers(-largest, largest), min_size=count, max_size=count).map(lambda e: 2.0 ** np.array(e))


def examples(count: int) -> settings:
    """So many problems, the same ones each time; a failure is shown as drawn, since making it smaller takes minutes."""
    return settings(max_examples=count, phases=(Phase.explicit, Phase.generate))


def well_determined() -> st.SearchStrategy[Problem]:
    """Problems for comparisons of two searches: enough noise and few enough outputs for the evidence to have a sharp top.

    With hardly any noise, or dozens of hyperparameters, places that differ by several hundredths have the same evidence
    to the six digits at which a search ends.
    """
    return problems(most_rows=12, most_outputs=3, missing=(0.0, 0.2), noise=(0.02, 0.1))
