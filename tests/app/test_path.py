"""The way through the page: table, law, fit, values, files."""

from __future__ import annotations

import io
import re
import runpy
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from app.person import LAW, OSCILLATOR, Person, person_with, trouble

import sumgp
from sumgp.app.store import Fit, Limits


@dataclass(frozen=True)
class Fitted:
    """A fit that is done, the page of it, and what the person's home folder holds afterwards."""

    person: Person
    fit: Fit
    page: str
    home: Path

    def file(self, name: str) -> bytes:
        answer = self.person.ask(f"/fits/{self.fit.key}/files/{name}")
        assert answer.status_code == 200
        assert answer.headers["content-disposition"].startswith("attachment")
        return answer.content


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fitted]:
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
            patch.setenv(name, str(home))
        person = person_with(Limits(points=1_000))
        fit = person.start(person.table(), LAW)
        yield Fitted(person, fit, person.finish(fit), home)
        person.workspace.close()


@pytest.fixture(scope="module")
def directly() -> sumgp.ConstrainedGP:
    """The same fit without the page."""
    data = pd.read_csv(OSCILLATOR)
    constants = {"k": 1.0, "m": 1.0, "E": 0.8}
    gp = sumgp.ConstrainedGP(LAW["law"], outputs=["z", "v"], inputs=["t"], constants=constants, uncertainty="plug-in")
    return gp.fit(data[["t"]], data[["z", "v"]])


def test_the_verdict_comes_first(fitted: Fitted) -> None:
    assert "The law helps: the error on left-out rows is" in fitted.page
    order = [fitted.page.index(f'id="{name}"') for name in ("words", "figures", "scores", "values", "downloads", "python")]
    assert order == sorted(order)
    assert re.findall(r'<figure [^>]*id="figure-(\w+)" data-figure', fitted.page) == ["outputs", "law", "calibration"]
    assert "Calibration by leave-out" in fitted.page


def test_stages_were_told(fitted: Fitted) -> None:
    stages = fitted.person.ask(f"/fits/{fitted.fit.key}/progress").json()["stages"]
    assert stages[0] == "reading the table"
    assert stages[-1] == "figures and files"
    assert any("hyperparameters" in stage for stage in stages)


def test_predictions_are_those_of_the_library(fitted: Fitted, directly: sumgp.ConstrainedGP) -> None:
    frame = pd.read_csv(io.BytesIO(fitted.file("predictions.csv")))
    expected = directly.posterior(np.linspace(0.0, 10.0, 200)).to_frame()
    np.testing.assert_allclose(frame.to_numpy(), expected.to_numpy(), atol=1e-9)
    assert frame["law_residual"].abs().max() < 1e-12


def test_the_model_can_be_loaded(fitted: Fitted, directly: sumgp.ConstrainedGP, tmp_path: Path) -> None:
    (tmp_path / "model.sumgp").write_bytes(fitted.file("model.sumgp"))
    points = np.array([0.5, 12.0])
    np.testing.assert_allclose(sumgp.load(tmp_path / "model.sumgp").predict(points), directly.predict(points), atol=1e-9)


def test_the_report_is_one_file_below_the_limit(fitted: Fitted) -> None:
    report = fitted.file("report.html")
    assert len(report) < 2_500_000
    outside_scripts = re.sub(rb"<script>.*?</script>", b"", report, flags=re.S)
    assert report.count(b"<script>") == 2
    assert re.findall(rb'(?:src|srcset|href)="(?!data:|#)', outside_scripts) == []
    assert report.index(b"The law helps") < report.index(b'id="figures"')


def test_the_lines_of_python_do_the_same(fitted: Fitted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "oscillator.csv").write_bytes(OSCILLATOR.read_bytes())
    (tmp_path / "fit.py").write_bytes(fitted.file("fit.py"))
    monkeypatch.chdir(tmp_path)
    runpy.run_path("fit.py", run_name="__main__")
    pages = pd.read_csv(io.BytesIO(fitted.file("predictions.csv")))
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "predictions.csv"), pages, atol=1e-9, check_exact=False)
    assert (tmp_path / "model.sumgp").is_file()


def test_values_at_given_points(fitted: Fitted, directly: sumgp.ConstrainedGP) -> None:
    answer = fitted.person.send(f"/fits/{fitted.fit.key}/values", {"points": "0.25\n11\n"})
    assert "2 points; 1 beyond the data" in answer.text
    expected = directly.posterior(np.array([0.25, 11.0])).to_frame()
    assert f"<td>{expected['z'].iloc[0]:.5g}</td>" in answer.text
    frame = pd.read_csv(io.BytesIO(fitted.file("values.csv")))
    np.testing.assert_allclose(frame.to_numpy(), expected.to_numpy(), atol=1e-9)


@pytest.mark.usefixtures("at_once")
def test_values_at_the_rows_of_a_file_and_bad_points(fitted: Fitted) -> None:
    address = f"/fits/{fitted.fit.key}/values"
    answer = fitted.person.send(address, {"points": ""}, files={"file": ("mine.csv", b"x,t\n9,1\n9,2\n9,3\n")})
    assert "3 points" in answer.text
    bad = fitted.person.send(address, {"points": "one"})
    assert bad.status_code == 400
    assert "numbers in column &#39;t&#39;" in trouble(bad.text)
    assert str(fitted.person.workspace.folder) not in bad.text


def test_nothing_is_written_outside_the_temporary_folder(fitted: Fitted) -> None:
    assert fitted.page
    assert [str(path) for path in fitted.home.rglob("*")] == []
    assert fitted.fit.folder.parent == fitted.person.workspace.folder


def test_the_choice_is_kept_for_the_next_fit(fitted: Fitted) -> None:
    page = fitted.person.ask(f"/tables/{fitted.fit.table.key}").text
    assert LAW["law"] in page
    assert 'value="0.8"' in page
    assert f"/fits/{fitted.fit.key}" in fitted.person.ask("/").text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"role-0": ""}, "inputs: expected at least one column"),
        ({"role-1": "", "role-2": ""}, "outputs: expected at least one column"),
        ({"law": "z + = 1"}, "The law: Expected a number"),
        ({"constant-number": ["1", "1", ""]}, "say what E is"),
        ({"noise": "loud"}, "--noise"),
    ],
)
def test_what_cannot_be_fitted_is_refused_before_a_process_starts(fitted: Fitted, change: dict, said: str) -> None:
    before = len(fitted.person.workspace.fits)
    answer = fitted.person.send(f"/tables/{fitted.fit.table.key}/fits", {**LAW, **change})
    assert answer.status_code == 400
    assert said in trouble(answer.text)
    assert len(fitted.person.workspace.fits) == before


@pytest.mark.usefixtures("at_once")
def test_a_fit_that_fails_says_why(fitted: Fitted) -> None:
    table = fitted.person.table(b"t,z,v\n,1,2\n1,2,3\n2,2,2\n", "gaps.csv")
    page = fitted.person.finish(fitted.person.start(table, {**LAW, "law": "", "constant-name": []}))
    assert "gaps.csv: expected a value in every row of &#39;t&#39;" in trouble(page)
    assert "Back to columns and law" in page


def test_two_inputs_are_maps_and_constants_come_from_columns_or_are_estimated(person: Person, at_once: None) -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.uniform(size=(25, 2)), columns=["p", "q"])
    frame["a"] = np.sin(3 * frame["p"]) * frame["q"] + 0.02 * rng.standard_normal(25)
    frame["b"] = 2.0 - frame["a"] + 0.02 * rng.standard_normal(25)
    table = person.table(frame.to_csv(index=False).encode(), "map.csv")
    form = {"role-0": "input", "role-1": "input", "role-2": "output", "role-3": "output", "law": "a + b = c", "quick": "yes"}
    constant = {"constant-name": "c", "constant-kind": "unknown", "constant-number": "", "constant-column": ""}
    page = person.finish(person.start(table, {**form, **constant}))
    assert 'id="figure-maps" data-figure' in page
    assert "Estimated constants" in page
    assert "a, without the law" in page


@pytest.mark.usefixtures("at_once")
def test_a_built_in_data_set_is_ready_to_fit(fitted: Fitted) -> None:
    answer = fitted.person.send("/examples", {"name": "epidemic"})
    page = fitted.person.ask(answer.headers["location"]).text
    assert "active + recovered + deaths = confirmed" in page
    assert "Understood" in page
    assert "days since 2020-01-22" in page
