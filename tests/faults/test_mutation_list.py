"""The list of mutations fits the package as it is, and the command tells caught from not caught."""

from __future__ import annotations

from pathlib import Path

import pytest

import mutate
from mutate import MUTATIONS, ROOT, Mutation


def test_there_are_ten_and_they_differ() -> None:
    assert len(MUTATIONS) >= 10
    assert len({m.name for m in MUTATIONS}) == len(MUTATIONS)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: m.name)
def test_each_applies_to_the_package(mutation: Mutation) -> None:
    text = (ROOT / "src" / "sumgp" / mutation.file).read_text(encoding="utf-8")
    assert text.count(mutation.old) == 1
    assert mutation.old != mutation.new
    assert (ROOT / "tests" / mutation.tests).is_file()


def small_project(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package of one function, with a test that looks at it and one that does not."""
    (folder / "src" / "sumgp").mkdir(parents=True)
    (folder / "tests").mkdir()
    (folder / "tools").mkdir()
    (folder / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    (folder / "src" / "sumgp" / "__init__.py").write_text("def twice(x):\n    return 2 * x\n")
    (folder / "tests" / "test_it.py").write_text("import sumgp\n\ndef test_it():\n    assert sumgp.twice(3) == 6\n")
    (folder / "tests" / "test_nothing.py").write_text("def test_nothing():\n    pass\n")
    monkeypatch.setattr(mutate, "ROOT", folder)


def test_caught_and_not_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    small_project(tmp_path, monkeypatch)
    caught = Mutation("factor", "__init__.py", "2 * x", "3 * x", "test_it.py")
    missed = Mutation("unseen", "__init__.py", "2 * x", "3 * x", "test_nothing.py")
    monkeypatch.setattr(mutate, "MUTATIONS", (caught, missed))
    assert mutate.main(["factor"]) == 0
    assert mutate.main([]) == 1
    printed = capsys.readouterr().out
    assert "NOT CAUGHT" in printed
    assert "1 of 2 caught" in printed


def test_a_text_that_is_gone_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_project(tmp_path, monkeypatch)
    with pytest.raises(ValueError, match="update the list"):
        mutate.apply(Mutation("gone", "__init__.py", "4 * x", "5 * x", "test_it.py"), tmp_path)
