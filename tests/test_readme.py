"""What the README shows is a file that runs, and what it says is printed is what is printed."""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path

import pytest

from sumgp.cli.app import run

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """Code blocks of the README in one language."""
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def test_example_is_the_file() -> None:
    text = (ROOT / "examples" / "quickstart.py").read_text(encoding="utf-8")
    docstring = ast.parse(text).body[0]
    body = "\n".join(text.splitlines()[docstring.end_lineno :]).strip()
    assert blocks("python")[0].strip() == body


def test_example_can_be_pasted_into_a_notebook() -> None:
    """No file beside it is needed: the test of examples/quickstart.py runs it, and this one sees that it has no place."""
    assert "__file__" not in blocks("python")[0]
    assert "read_csv" not in blocks("python")[0]
    assert ". .venv/bin/activate" in "".join(blocks("sh"))
    assert "pip install ." in "".join(blocks("sh"))


def test_example_is_ten_lines_after_its_imports() -> None:
    lines = [line for line in blocks("python")[0].splitlines() if line and not re.match(r"import |from ", line)]
    assert len(lines) <= 10


def test_printed_text_is_the_recorded_one() -> None:
    assert blocks("text")[0] == (ROOT / "examples" / "outputs" / "quickstart.txt").read_text(encoding="utf-8")


def test_commands_run_as_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = [shlex.split(line) for line in "".join(blocks("sh")).replace("\\\n", " ").splitlines()]
    ours = [words[1:] for words in commands if words and words[0] == "sumgp"]
    assert [words[0] for words in ours] == ["fit", "predict"]
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    for words in ours:
        assert run(words) == 0, capsys.readouterr().err
    assert {path.name for path in (tmp_path / "results").iterdir()} == {"model.sumgp", "predictions.csv", "report.html"}
    assert (tmp_path / "predictions.csv").stat().st_size > 1000


def test_links_lead_somewhere() -> None:
    targets = re.findall(r"\]\(([^)#]+)\)", README)
    assert targets
    assert [target for target in targets if not (ROOT / target).exists()] == []
