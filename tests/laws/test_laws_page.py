"""The page "Laws you can write": every function is on it, every example is read, everything else is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sumgp import ConstraintError
from sumgp.laws import FormulaConstraint
from sumgp.laws.formula.hint_texts import FUNCTIONS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "laws.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(
    r"^\| *\w* *\| (`+ ?.+? ?`+) \|", PAGE.split("## Examples by field")[1].split("## What is not")[0], re.M
)
LAWS = [re.sub(r"^`` | ``$", "", cell) if cell.startswith("``") else cell.strip("`") for cell in EXAMPLES]


def test_every_function_is_on_the_page() -> None:
    assert [name for name in FUNCTIONS if f"`{name}(" not in PAGE] == []


def test_examples_are_found() -> None:
    assert len(LAWS) >= 18
    assert "pH + pOH = 14" in LAWS


@pytest.mark.parametrize("law", LAWS)
def test_example_is_read(law: str) -> None:
    assert FormulaConstraint(law).laws


def test_bounds_of_the_page_are_read() -> None:
    table = PAGE.split("## Bounds")[1].split("## What is not")[0]
    bounds = [text for cell in re.findall(r"^\| (`.+`) \|", table, re.M) for text in re.findall(r"`([^`]+)`", cell)]
    assert len(bounds) >= 6
    for text in bounds:
        assert FormulaConstraint(text, {"capacity": 2.0}).bounds(("a", "b", "p"))


@pytest.mark.parametrize("text", ["a => 0", "a + b = 1 +- x", "z' = v", "a:b = 2:1", "2a = 1", "sin a = 1", "a = 0,5"])
def test_what_the_page_calls_unsupported_is_refused(text: str) -> None:
    with pytest.raises(ConstraintError):
        FormulaConstraint(text)
