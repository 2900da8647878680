"""Exceptions, warnings and the statuses of a search; messages name argument, expectation, finding and remedy."""

from __future__ import annotations

import sys
import warnings
from enum import StrEnum


class SumGPError(Exception):
    """Base of every error that sumgp raises on purpose: a message, or argument, expectation, finding and remedy.

    >>> SumGPError("X", "finite numbers", "NaN in row 3", "drop that row")
    SumGPError('X: expected finite numbers, got NaN in row 3; drop that row')
    """

    def __init__(self, *parts: str) -> None:
        super().__init__(*(("{}: expected {}, got {}; {}".format(*parts),) if len(parts) == 4 else parts))


class DataError(SumGPError, ValueError):
    """The data given to fit or predict cannot be used as they are."""


class ConstraintError(SumGPError, ValueError):
    """The law cannot be understood, cannot be met, or does not fit the outputs."""


class NumericalError(SumGPError, ArithmeticError):
    """A computation failed although the input was valid; the message says what was tried."""


class SumGPWarning(UserWarning):
    """Something a careful user should know about a result that was still given."""


def warn(message: str) -> None:
    """Give a SumGPWarning that points at the line of the user's program which led here."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("sumgp."):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, SumGPWarning, stacklevel=level)


def doubted(words: str, more: str) -> str:
    """The status of a fit that converged to an answer in doubt, of which ``words`` say why; warned of, with ``more``."""
    warn(words + more)
    return f"converged, but {words}"


class Status(StrEnum):
    """How a search ended. Texts may go on with the place: ``"law infeasible near x = [0.5]"``."""

    CONVERGED = "converged"
    STEP_LIMIT = "step limit"
    STALLED = "stalled"
    ROUND_OFF = "round-off"
    LEFT_BEHIND = "left behind"
    FAILED_FACTOR = "failed Cholesky factor"
    COLLAPSED = "lengthscale collapsed"
    LAW_INFEASIBLE = "law infeasible"
    LAW_NOT_MET = "law not met"
    PRIOR_MISFIT = "prior does not fit the law"
    FELL_BACK = "fell back"
    OTHER = ""

    def __repr__(self) -> str:
        return repr(self.value)

    @classmethod
    def of(cls, text: str) -> Status:
        """The status that a text begins with."""
        return next(status for status in cls if text.startswith(status))

    def at(self, place: str) -> str:
        """The status with the place where it was found."""
        return f"{self} {place}"

    @property
    def remedy(self) -> str:
        """What a user can do about it; empty where nothing is wrong."""
        return _REMEDIES.get(self, "check the law against the data (fit_report_), or use strategy=Projected()")


_REMEDIES = {
    Status.CONVERGED: "",
    Status.LAW_INFEASIBLE: "check the law and its constants there, or allow an error with noise= on the law",
}


def counted(number: int, noun: str) -> str:
    """Number and noun: ``1 row``, ``2 rows``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
