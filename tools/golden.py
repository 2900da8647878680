"""Frozen predictions: the same numbers before and after a change of structure.

``python tools/golden.py freeze FILE`` fits every strategy on every law of the conformance suite, one data set of each of the
paper's cells, and long series, and writes means, standard deviations and intervals. ``python tools/golden.py compare FILE``
fits again and prints the largest relative difference of each problem; it exits with 1 above ``--tolerance``. Numbers are
compared on one machine: another CPU rounds differently.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from conformance.checks import data, estimator
from conformance.laws import ASKED, LAWS, X
from conformance.test_strategies import STRATEGIES

import sumgp

LEVEL = 0.95
SEED = 1000  # of the data sets: not one that results are reported on

Predict = Callable[[], "sumgp.prediction.Posterior"]


def conformance_problems() -> Iterator[tuple[str, Predict]]:
    """Every strategy on every law kind, complete and with gaps."""
    for strategy, (way, nonlinear, _) in STRATEGIES.items():
        for kind, law in LAWS.items():
            for pattern in ("complete", "scattered"):
                if law.linear or nonlinear:
                    y = data(law, pattern)
                    yield (
                        f"{strategy} | {kind} | {pattern}",
                        lambda way=way, law=law, y=y: estimator(way, law).fit(X, y).posterior(ASKED),
                    )


def engine_problems() -> Iterator[tuple[str, Predict]]:
    """The paper's method with each engine."""
    engines = (sumgp.Gaussian, sumgp.MomentMatched, sumgp.Laplace, sumgp.Variational, sumgp.ExpectationPropagation)
    for engine in engines:
        for kind in ("constant", "squares", "logarithm"):
            law = LAWS[kind]
            way = sumgp.Transformed(inference=engine())
            yield (
                f"transformed {engine.__name__} | {kind}",
                lambda way=way, law=law: estimator(way, law).fit(X, data(law, "scattered")).posterior(ASKED),
            )


def series_problems() -> Iterator[tuple[str, Predict]]:
    """The state-space form under each kind of law."""
    t = np.linspace(0.0, 30.0, 400)
    generator = np.random.default_rng(SEED)
    circle = np.column_stack([np.cos(t), np.sin(t)]) + 0.1 * generator.standard_normal((400, 2))
    line = np.column_stack([np.sin(t), 1.0 - np.sin(t)]) + 0.1 * generator.standard_normal((400, 2))
    names = {"outputs": ["a", "b"], "inputs": ["t"], "solver": sumgp.Markov()}
    asked = np.linspace(-1.0, 31.0, 40)
    for law, y in (("a**2 + b**2 = 1", circle), ("a + b = 1", line), (None, line)):
        yield f"markov | {law}", lambda law=law, y=y: sumgp.ConstrainedGP(law, **names).fit(t, y).posterior(asked)


def paper_problems() -> Iterator[tuple[str, Predict]]:
    """One data set of each cell of the paper's simulations."""
    from sumgp_studies.experiments import all_problems
    from sumgp_studies.experiments.methods import Settings, method_named

    for name, problem in all_problems().items():
        if name in ("double_pendulum", "approximations"):
            continue
        for cell in problem.cells:
            dataset = problem.dataset(cell, SEED)
            for method in ("unconstrained", "linearized"):
                yield (
                    f"{name} | {cell.label()} | {method}",
                    lambda m=method, d=dataset: method_named(m).fit(d, Settings()).predict(d.X_test[::10]),
                )


def numbers(predict: Predict) -> np.ndarray:
    """(4, n, T) mean, sd and interval; one NaN where the fit is refused."""
    try:
        posterior = predict()
        return np.stack([posterior.mean, posterior.std, *posterior.interval(LEVEL)])
    except sumgp.SumGPError:
        return np.full(1, np.nan)


def difference(now: np.ndarray, before: np.ndarray) -> float:
    """Largest difference in units of the largest standard deviation or value of that output."""
    if now.shape != before.shape or np.any(np.isnan(now) != np.isnan(before)):
        return np.inf
    if now.ndim == 1:
        return 0.0
    size = np.max(np.abs(before), axis=(0, 1))
    return float(np.max(np.abs(now - before) / np.where(size > 0, size, 1.0)))


def main() -> int:
    """Freeze or compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=["freeze", "compare"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--tolerance", type=float, default=1e-10)
    parser.add_argument("--only", default="", help="part of a problem's name")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    problems = [*conformance_problems(), *engine_problems(), *series_problems(), *paper_problems()]
    problems = [(name, predict) for name, predict in problems if chosen.only in name]
    if chosen.action == "freeze":
        np.savez_compressed(chosen.file, **{name: numbers(predict) for name, predict in problems})
        print(f"{len(problems)} problems frozen in {chosen.file}")
        return 0
    before = np.load(chosen.file)
    worst = 0.0
    for name, predict in problems:
        off = difference(numbers(predict), before[name])
        worst = max(worst, off)
        if off > chosen.tolerance:
            print(f"{off:9.2e}  {name}")
    print(f"{len(problems)} problems, largest difference {worst:.1e}")
    return int(worst > chosen.tolerance)


if __name__ == "__main__":
    sys.exit(main())
