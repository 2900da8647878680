"""Every script of the gallery runs, writes the two figures that the page shows, and stands on the page; pages stay small."""

from __future__ import annotations

import re
import runpy
import sys
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = sorted(path for path in (ROOT / "examples" / "gallery").glob("*.py") if path.stem not in ("look", "tutorials"))
IMAGES = ROOT / "docs" / "images"
PAGE = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
MEGABYTES = 2.0  # all images of the pages together
RUNNABLE = SCRIPTS


@pytest.mark.parametrize("script", RUNNABLE, ids=lambda path: path.stem)
def test_script_runs(
    script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(script.parent))
    monkeypatch.delitem(sys.modules, "look", raising=False)
    import look

    monkeypatch.setattr(look, "IMAGES", tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        runpy.run_path(str(script))
    assert {path.name for path in tmp_path.iterdir()} == {f"{script.stem}-light.svg", f"{script.stem}-dark.svg"}
    assert capsys.readouterr().out


def test_at_least_eight_and_each_on_the_page() -> None:
    assert len(SCRIPTS) >= 8
    assert [s.stem for s in SCRIPTS if PAGE.count(f"images/gallery/{s.stem}-light.svg#only-light") != 2] == []
    assert set(re.findall(r'--8<-- "examples/gallery/(\w+)\.py"', PAGE)) == {s.stem for s in SCRIPTS}


def test_dark_figures_have_other_colours_and_the_same_content() -> None:
    for light in sorted((IMAGES / "gallery").glob("*-light.svg")):
        dark = light.with_name(light.name.replace("-light", "-dark")).read_text(encoding="utf-8")
        colours = re.compile(r"#[0-9a-f]{6}")
        assert dark != light.read_text(encoding="utf-8")
        assert colours.sub("", dark) == colours.sub("", light.read_text(encoding="utf-8"))


def test_images_stay_small() -> None:
    assert sum(path.stat().st_size for path in IMAGES.rglob("*") if path.is_file()) < MEGABYTES * 1e6
