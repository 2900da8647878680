"""Exceptions and warnings, each worded as argument, expectation, finding and remedy."""

from __future__ import annotations


class SumGPError(Exception):
    """Base of every error that sumgp raises on purpose."""


class DataError(SumGPError, ValueError):
    """The data given to fit or predict cannot be used as they are."""


class ConstraintError(SumGPError, ValueError):
    """The law cannot be understood, cannot be met, or does not fit the outputs."""


class NumericalError(SumGPError, ArithmeticError):
    """A computation failed although the input was valid; the message says what was tried."""


class SumGPWarning(UserWarning):
    """Something a careful user should know about a result that was still given."""


def worded(argument: str, expected: str, got: str, remedy: str) -> str:
    """Return the one-line message used for invalid arguments.

    >>> worded("X", "finite numbers", "NaN in row 3", "drop that row")
    'X: expected finite numbers, got NaN in row 3; drop that row'
    """
    return f"{argument}: expected {expected}, got {got}; {remedy}"
