"""docs/architecture.md tells the way of a datum: a traced fit enters the packages it names, no others, and few files."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import sumgp

PACKAGE = Path(sumgp.__file__).parent
MOST_FILES = {"energy": 30, "linear": 29, "series": 27}  # that a reader of one fit enters
PAGE = PACKAGE.parent.parent / "docs" / "architecture.md"
TOLD = [block.split() for block in re.findall(r"```text\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)]


def entered(program: Callable[[], object]) -> list[Path]:
    """Files of the library whose functions run, in order of first entry."""
    found: dict[str, None] = {}
    package = str(PACKAGE)

    def watch(frame: FrameType, event: str, argument: Any) -> None:
        """Told of calls of Python functions only, since no function is followed further."""
        code = frame.f_code
        if code.co_filename.startswith(package) and code.co_name != "<module>":
            found.setdefault(code.co_filename)

    before = sys.gettrace()
    sys.settrace(watch)
    try:
        program()
    finally:
        sys.settrace(before)
    return [Path(file).relative_to(PACKAGE) for file in found]


def measured(t: np.ndarray, curves: tuple[np.ndarray, ...]) -> np.ndarray:
    return np.column_stack(curves) + 0.03 * np.random.default_rng(0).standard_normal((len(t), len(curves)))


def energy() -> None:
    t = np.linspace(0.0, 6.0, 15)
    gp = sumgp.ConstrainedGP("z**2/2 + v**2/2 = 0.5", outputs=["z", "v"], inputs=["t"])
    gp.fit(t, measured(t, (np.sin(t), np.cos(t)))).posterior(np.linspace(0, 6, 5)).interval()


def linear() -> None:
    t = np.linspace(0.0, 3.0, 12)
    gp = sumgp.ConstrainedGP("a + b = 1", outputs=["a", "b"])
    gp.fit(t, measured(t, (np.sin(t), 1.0 - np.sin(t)))).posterior(t).interval()


def series() -> None:
    t = np.linspace(0.0, 20.0, 200)
    gp = sumgp.ConstrainedGP("a**2 + b**2 = 1", outputs=["a", "b"], solver=sumgp.Markov())
    gp.fit(t, measured(t, (np.sin(t), np.cos(t)))).posterior(t[:5]).interval()


def package_of(file: Path) -> str:
    return ".".join(file.parent.parts) or file.stem


@pytest.mark.parametrize(("program", "told"), list(zip((energy, linear, series), TOLD, strict=True)))
def test_a_fit_enters_the_packages_that_the_page_names(program: Callable[[], object], told: list[str]) -> None:
    program()  # once before: names of the front page are loaded when first used
    files = entered(program)
    assert {package_of(file) for file in files} - {"errors"} == set(told)
    assert len(files) <= MOST_FILES[program.__name__], [str(file) for file in files]
