"""One random problem from a seed: how it is posed, fitted under a time limit, and what came of it in a few words."""

from __future__ import annotations

import re
import signal
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

import numpy as np
from properties.outcomes import never_measured, violation
from properties.problems import BUILDERS, Problem, Shape, build
from scipy.linalg import _flapack

from sumgp import Bounds, Conditioned, ConstrainedGP, Linearized, Projected, SumGPError, Transformed, Unconstrained
from sumgp.strategies import Strategy

LIMIT = 30.0  # seconds of wall time
TOLERANCE = 1e-8  # of the largest term of a law
BOUNDED = 0.35  # share of the problems with bounds on some outputs
INTEGRATED = 0.25  # share of the problems whose hyperparameters are averaged over
FITTED, SAID = "fitted", "law not met, and said so"
REFUSALS = ("refused: DataError", "refused: ConstraintError", "refused: NumericalError")
ALLOWED = (FITTED, SAID, *REFUSALS)
# LAPACK's own error class derives from none of the others.
CRASHES = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError),
    *(OSError, RuntimeError, TypeError, ValueError, vars(_flapack)["__flapack_error"]),
)

# Ways to impose a law, and how often each is taken; None = chosen from the law.
OTHERS: dict[str, tuple[Strategy, ...]] = {
    "none": (Unconstrained(),),
    "linear": (Conditioned(), Conditioned(joint=True), Linearized(), Projected(), Unconstrained()),
    "sum": (Linearized(taper=None), Projected(), Transformed(), Unconstrained()),
    "squares": (Projected(), Transformed(), Unconstrained()),
    "lengths": (Linearized(taper=None), Projected(), Unconstrained()),
}
CHOSEN = 0.7


class OutOfTimeError(Exception):
    """The limit of wall time was reached."""


@dataclass(frozen=True)
class Trial:
    """What became of the problem of a seed."""

    seed: int
    kind: str
    strategy: str
    uncertainty: str
    outcome: str
    unmeasured: int = 0  # outputs without a single measurement
    message: str = ""
    violation: float = 0.0
    seconds: float = 0.0
    cpu: float = 0.0


def pose(seed: int) -> tuple[Problem, Strategy | None, str]:
    """Problem, strategy and uncertainty of a seed: most problems small, units and offsets wild."""
    generator = np.random.default_rng([seed, 4712])
    kind = str(generator.choice(list(BUILDERS)))
    linear = kind in ("none", "linear")
    most_outputs = 8 if linear else 6
    integrated = generator.uniform() < INTEGRATED
    # Powers of uniform numbers: half of the problems have at most two rows, one in nine more than 35.
    rows = 1 + int((10 if integrated else 60) * generator.uniform() ** 5)
    outputs = (1 if linear else 2) + int((most_outputs - (0 if linear else 1)) * generator.uniform() ** 3)
    shape = Shape(
        kind=kind,
        n_outputs=min(outputs, most_outputs),
        n_rows=rows,
        n_inputs=int(generator.choice([1, 1, 2, 3])),
        # Of few entries 95 % would be all of them most of the time, which is refused at once.
        missing=float(generator.choice([0.0, 0.0, 0.2, 0.5, 0.95 if rows * outputs >= 20 else 0.5])),
        repeated=bool(generator.uniform() < 0.3),
        noise=float(10.0 ** generator.uniform(-4, -0.5)),
        seed=seed,
    )
    problem = build(shape)
    problem = problem.in_units(10.0 ** generator.uniform(-12, 12, problem.Y.shape[1]))
    unit = 10.0 ** generator.uniform(-6, 6, shape.n_inputs)
    offset = float(generator.choice([0.0, 0.0, 1e3, 1e9]))
    # An offset can only be told from the inputs' differences while those are above its round-off.
    problem = problem.with_inputs(unit, offset if offset * 1e-10 < unit.min() else 0.0)
    others = OTHERS[kind]
    strategy = None if generator.uniform() < CHOSEN else others[int(generator.integers(len(others)))]
    return problem, strategy, "integrated" if integrated else "plug-in"


def random_bounds(seed: int, problem: Problem, strategy: Strategy | None) -> Bounds | None:
    """Bounds on some outputs for one problem in three, through the measured values or around them; None for the others."""
    generator = np.random.default_rng([seed, 4713])
    if generator.uniform() > BOUNDED or isinstance(strategy, Transformed):
        return None
    names = [f"y{t + 1}" for t in range(problem.Y.shape[1])]
    known = [values[~np.isnan(values)] for values in problem.Y.T]
    levels = np.sort(generator.uniform(-0.3, 1.3, (len(names), 2)), axis=1)
    ends = [
        (float(v.min() + low * np.ptp(v)), float(v.min() + high * np.ptp(v))) if len(v) else (-np.inf, np.inf)
        for v, (low, high) in zip(known, levels, strict=True)
    ]
    sides = generator.uniform(size=(len(names), 2)) < 0.5
    lower = {name: end[0] for name, end, side in zip(names, ends, sides, strict=True) if side[0]}
    upper = {name: end[1] for name, end, side in zip(names, ends, sides, strict=True) if side[1]}
    return Bounds(lower, upper) if lower or upper else None


def run(seed: int, limit: float = LIMIT) -> Trial:
    """Fit, predict and sample the problem of a seed; errors other than our own count as crashes."""
    problem, strategy, uncertainty = pose(seed)
    name = "chosen" if strategy is None else named(strategy)
    start, cpu = time.perf_counter(), time.process_time()
    try:
        with time_limit(limit), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            bounds = random_bounds(seed, problem, strategy)
            outcome, message, worst = attempt(problem, strategy, uncertainty, bounds)
    except OutOfTimeError:
        outcome, message, worst = f"over {limit:.0f} s", "", 0.0
    except CRASHES as error:
        outcome, message, worst = f"crash: {type(error).__name__}", str(error)[:200], 0.0
    seconds, used = time.perf_counter() - start, time.process_time() - cpu
    unmeasured = never_measured(problem)
    return Trial(
        *(seed, problem.shape.kind, name, uncertainty, outcome),
        *(unmeasured, message, worst, round(seconds, 3), round(used, 3)),
    )


def named(strategy: Strategy) -> str:
    """The strategy's name, with the choices made in OTHERS."""
    name = type(strategy).__name__
    if strategy == type(strategy)():
        return name
    return name + (", joint" if isinstance(strategy, Conditioned) else ", no taper")


def attempt(
    problem: Problem, strategy: Strategy | None, uncertainty: str, bounds: Bounds | None = None
) -> tuple[str, str, float]:
    """Outcome, words of a refusal, and the largest violation of the law by means and samples."""
    law = problem.constraint
    constraint = [part for part in (law, bounds) if part is not None] if bounds is not None else law
    try:
        gp = ConstrainedGP(constraint, strategy=strategy, uncertainty=uncertainty, restarts=0)
        posterior = gp.fit(problem.X, problem.Y).posterior(problem.X_new)
        mean, std, draws = posterior.mean, posterior.std, posterior.sample(2)
        ends = posterior.interval(0.95)
    except SumGPError as error:
        words = str(error)
        return (f"refused: {type(error).__name__}" if ";" in words else "refused without a remedy"), words[:300], 0.0
    if not all(np.all(np.isfinite(values)) for values in (mean, std, draws, *ends)):
        return "not finite", "", 0.0
    if gp.bounding_ is not None and gp.fit_report_.status == "converged":
        limits = gp.bounding_.bounds.limits(problem.X_new)
        if any(np.any((values < limits.lower) | (values > limits.upper)) for values in (mean, *ends, *draws)):
            return "outside its bounds", "", 0.0
    if isinstance(strategy, Unconstrained):
        return FITTED, "", 0.0
    worst = max(violation(gp, values, problem.X_new) for values in (mean, *draws))
    if worst <= TOLERANCE:
        return FITTED, "", worst
    status = gp.fit_report_.status
    return (SAID if status != "converged" else "law not met, unsaid"), status, worst


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise OutOfTimeError in the main thread once the wall time is used up."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise OutOfTimeError

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def without_numbers(message: str) -> str:
    """A message with its numbers and names left out, so that refusals of one sort count together."""
    text = re.sub(r"\[[^\]]*\]", "[...]", message)
    text = re.sub(r"'[^']*'", "'...'", text)
    text = re.sub(r"-?\d[\d.]*(e[+-]?\d+)?", "N", text)
    return text.replace("|", "/")[:160]
