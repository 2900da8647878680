"""Every example runs and prints what the tutorials say; every option in the pages exists."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
RECORDER = runpy.run_path(str(EXAMPLES / "record_outputs.py"), run_name="recorder")
PAGES = sorted((ROOT / "docs").rglob("*.md"))


@pytest.mark.parametrize("name", RECORDER["NAMES"])
def test_example_prints_what_is_recorded(name: str) -> None:
    recorded = (EXAMPLES / "outputs" / f"{name}.txt").read_text(encoding="utf-8")
    assert RECORDER["printed"](name) == recorded, "run python examples/record_outputs.py if the change is meant"


def test_every_tutorial_shows_its_whole_example() -> None:
    for page in (ROOT / "docs" / "tutorials").glob("*.md"):
        text = page.read_text(encoding="utf-8")
        sections = re.findall(rf'--8<-- "examples/{page.stem}\.py:(\w+)"', text)
        script = (EXAMPLES / f"{page.stem}.py").read_text(encoding="utf-8")
        assert sections == re.findall(r"\[start:(\w+)\]", script), page
        assert f'--8<-- "examples/outputs/{page.stem}.txt"' in text


def test_options_in_the_pages_exist() -> None:
    from sumgp.cli import arguments, check, complete, fit, predict
    from sumgp_studies.commands import bench, reproduce

    modules = (arguments, check, complete, fit, predict, reproduce, bench)
    sources = "".join(Path(module.__file__ or "").read_text(encoding="utf-8") for module in modules)
    known = set(re.findall(r"--[a-z-]+", sources)) | {"--debug"}
    options = re.findall(r"^    (\w+): (?:Annotated|arguments\.)", sources, flags=re.MULTILINE)
    known |= {f"--{name.replace('_', '-')}" for name in options}
    for page in [*PAGES, ROOT / "README.md"]:
        text = re.sub(r'--8<-- "[^"]*"', "", page.read_text(encoding="utf-8"))
        used = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text))
        assert used <= known, (page, used - known)
