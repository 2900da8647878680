"""The page: self-contained, escaped, complete; and the files of a report."""

from __future__ import annotations

import base64
import re
from html.parser import HTMLParser

import pytest
from studies.stand_in import Fails, Waves

from sumgp_studies.experiments import HarmonicOscillator, all_problems
from sumgp_studies.experiments.methods import all_methods
from sumgp_studies.experiments.records import Record, RecordFile
from sumgp_studies.experiments.runner import plan, run
from sumgp_studies.report import ReportSettings, write_report
from sumgp_studies.report.page import run_facts

METHODS = {name: Waves(name) for name in all_methods()}


class Outline(HTMLParser):
    """Collects tags, attributes that would fetch something, and open tags."""

    VOID = frozenset({"meta", "img", "source", "br", "link", "input"})

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag, attributes) -> None:
        self.tags.append(tag)
        self.addresses += [value for name, value in attributes if name in ("src", "srcset", "href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    out = tmp_path_factory.mktemp("report")
    file = RecordFile(out / "records.jsonl")
    methods = [METHODS["unconstrained"], METHODS["linearized"], Fails("transformed-laplace")]
    run(plan([HarmonicOscillator()], lambda problem: methods, [0, 1]), file)
    settings = ReportSettings(facts=(("note", "<i>sloped</i>"),))
    return out, write_report(file.read(), all_problems(), METHODS, out, settings)


def outline(page: str) -> Outline:
    parser = Outline()
    parser.feed(page)
    parser.close()
    assert parser.open == []
    return parser


def test_page_needs_nothing_from_outside(written):
    page = (written[0] / "report.html").read_text()
    found = outline(page)
    assert "script" not in found.tags
    assert all(address.startswith(("data:image/svg+xml;base64,", "#")) for address in found.addresses)
    assert not re.search(r"url\(|@import", page)
    assert found.tags.count("img") == 3
    assert 'name="viewport"' in page
    assert "prefers-color-scheme: dark" in page


def test_links_lead_somewhere(written):
    page = (written[0] / "report.html").read_text()
    targets = [address[1:] for address in outline(page).addresses if address.startswith("#")]
    assert set(targets) == {"summary", "harmonic_oscillator", "run"}
    assert all(f'id="{target}"' in page for target in targets)


def test_words_of_records_are_escaped(written):
    page = (written[0] / "report.html").read_text()
    assert "<b>not even</b>" not in page
    assert "&lt;b&gt;not even&lt;/b&gt;" in page
    assert "&lt;i&gt;sloped&lt;/i&gt;" in page


def test_page_tells_what_was_run(written):
    page = (written[0] / "report.html").read_text()
    assert "36, of which 12 failed" in page
    assert "0 to 1" in page
    assert "numpy" in page
    assert "paper: GP-c" in page


def test_pictures_in_the_page_are_the_figures_of_the_folder(written):
    page = (written[0] / "report.html").read_text()
    for name in ("ratios", "calibration", "harmonic_oscillator"):
        content = (written[0] / "figures" / f"{name}.svg").read_bytes()
        assert base64.b64encode(content).decode() in page


def test_files_and_summary(written):
    out, result = written
    names = {path.relative_to(out).as_posix() for path in result.files}
    assert {"tables.md", "tables.csv", "report.html", "figures/ratios.svg"} <= names
    assert not list(out.rglob("*.unfinished"))
    assert any(line.startswith("linearized: RMSE below the paper's GP-c in") for line in result.lines)
    assert "12 failed" in (out / "tables.md").read_text()


def test_the_error_stands_first_in_every_table(tmp_path):
    """Not only in the first one; where the paper states the root of the sum, the other error is a further score."""
    scores = {"rmse": 0.1, "rmse_norm": 0.2, "violation": 0.3, "coverage": 0.9, "nlpd": 0.4}
    cells = {"harmonic_oscillator": (0.05, 0.0), "triangle": (0.01, None), "free_fall": (0.05, 0.0)}
    records = [
        Record(name, *cell, 0, "linearized", "integrated", "simulated", "converged", **scores)
        for name, cell in cells.items()
    ]
    write_report(records, all_problems(), METHODS, tmp_path, ReportSettings(figures=False))
    page = (tmp_path / "report.html").read_text()
    for name in cells:
        section = page[page.index(f'<section id="{name}">') :].split("</section>")[0]
        shown, further = ([h.split("</h3>")[0] for h in part.split("<h3>")[1:]] for part in section.split("<details>"))
        assert "RMSE" in shown[0]
        assert any("Coverage" in heading for heading in shown)
        assert ["RMSE" in heading for heading in further].count(True) == (name == "triangle")


def test_simulated_pendulum_is_announced(tmp_path):
    record = Record("double_pendulum", None, None, 0, "linearized", "integrated", "simulated", "converged", rmse_norm=0.1)
    result = write_report([record], all_problems(), METHODS, tmp_path, ReportSettings(figures=False))
    assert any("SIMULATED" in line for line in result.lines)
    page = (tmp_path / "report.html").read_text()
    assert "SIMULATED double pendulum" in page
    assert "paper: GP-c" not in page


def test_report_of_nothing(tmp_path):
    write_report([], all_problems(), METHODS, tmp_path, ReportSettings())
    assert "Nothing that can be compared" in (tmp_path / "report.html").read_text()


def test_seeds_are_joined_to_ranges():
    records = [Record("x", None, None, seed, "m", "integrated", "simulated", "ok") for seed in (0, 1, 2, 7)]
    assert dict(run_facts(records).facts)["seeds"] == "0 to 2, 7"
