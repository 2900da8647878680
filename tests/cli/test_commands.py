"""The commands as a user calls them: files, summaries, JSON, exit codes."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sumgp as package
from sumgp.cli import app, arguments
from sumgp.cli.app import COMMANDS, one_line
from sumgp.cli.demo import truth
from sumgp.estimator.preparation import kernel_named
from sumgp.files import archive as files
from sumgp.version import VERSION
from sumgp_studies.experiments.records import Record, RecordFile

FILES = {"model.sumgp", "predictions.csv", "report.html"}


def exact(path: Path) -> pd.DataFrame:
    """A table of numbers, each read to the last digit."""
    return pd.read_csv(path, dtype=str).map(float)


def test_fit_writes_everything(quick_fit) -> None:
    result, out = quick_fit
    assert (result.code, result.err) == (0, "")
    assert {path.name for path in out.iterdir()} == FILES
    for phrase in ("10 rows", "square, two branches", "noise sd", "lengthscale", "left-out", "without", "measured rows"):
        assert phrase in " ".join(result.out.split()), phrase


def test_predictions_are_the_models_own(quick_fit) -> None:
    _, out = quick_fit
    frame = exact(out / "predictions.csv")
    gp = package.load(out / "model.sumgp")
    expected = gp.posterior(frame[["t"]]).to_frame()
    assert list(frame.columns) == ["t", *(f"{n}{s}" for n in "zv" for s in ("", "_sd", "_lower", "_upper")), "law_residual"]
    pd.testing.assert_frame_equal(frame, expected, check_exact=True)
    assert np.abs(0.5 * frame["z"] ** 2 + 0.5 * frame["v"] ** 2 - 0.8).max() < 1e-12


def test_fit_at_given_points_and_predict_agree(sumgp, fit_words, tmp_path: Path) -> None:
    at = tmp_path / "at.csv"
    pd.DataFrame({"other": ["a", "b", "c"], "t": [0.5, 3.25, 7.0]}).to_csv(at, index=False)
    out = tmp_path / "results"
    assert sumgp(*fit_words, "--at", at, "--out", out).code == 0
    result = sumgp("predict", out / "model.sumgp", at, "-o", tmp_path / "new.csv")
    assert result.code == 0, result.err
    assert "3 rows predicted" in result.out
    assert (tmp_path / "new.csv").read_bytes() == (out / "predictions.csv").read_bytes()


def test_predict_at_another_level(sumgp, quick_fit, tmp_path: Path) -> None:
    _, out = quick_fit
    assert (
        sumgp(
            "predict", out / "model.sumgp", out / "predictions.csv", "-o", tmp_path / "p.csv", "--level", "0.5", "--json"
        ).code
        == 0
    )
    narrow, wide = pd.read_csv(tmp_path / "p.csv"), pd.read_csv(out / "predictions.csv")
    assert np.all(narrow["z_upper"] - narrow["z_lower"] < wide["z_upper"] - wide["z_lower"])


def test_json_of_a_fit(sumgp, fit_words, tmp_path: Path) -> None:
    result = sumgp(*fit_words, "--out", tmp_path / "results", "--json")
    found = json.loads(result.out)
    assert found["outputs"] == ["z", "v"]
    assert found["missing"] == [1, 1]
    assert found["strategy"] == "Linearized"
    assert found["violation"]["own"][0] < 1e-12 < found["violation"]["raw"][0]
    assert all(Path(name).is_file() for name in found["files"])


def test_fit_without_a_law_takes_all_other_columns(sumgp, oscillator: Path, tmp_path: Path) -> None:
    result = sumgp(
        "fit",
        oscillator,
        "--inputs",
        "t",
        "--plug-in",
        "--grid",
        5,
        "--kernel",
        "matern52",
        "--out",
        tmp_path / "o",
        "--json",
    )
    found = json.loads(result.out)
    assert (found["outputs"], found["law"], found["kernel"]) == (["z", "v"], [], "Matern")


def test_constants_from_columns_and_unknown(sumgp, tmp_path: Path) -> None:
    x = np.linspace(0.0, 1.0, 12)
    frame = pd.DataFrame({"x": x, "total": 10.0 + x, "a": 4.0 + np.sin(3 * x), "b": 6.0 + x - np.sin(3 * x)})
    frame["b"] += 0.01 * np.cos(40 * x)
    frame.to_csv(tmp_path / "d.tsv", index=False, sep="\t")
    words = ["fit", tmp_path / "d.tsv", "-c", "a + b = s", "--inputs", "x", "--outputs", "a,b", "--plug-in", "--json"]
    words += ["--kernel", "rbf", "--grid", "20"]
    column = json.loads(sumgp(*words, "--constant", "s=total", "--out", tmp_path / "c").out)
    assert column["violation"]["own"][0] < 1e-12
    unknown = json.loads(sumgp(*words, "--constant", "s=unknown", "--out", tmp_path / "u").out)
    assert unknown["constants"]["s"]["mean"] == pytest.approx(10.5, abs=0.6)


def test_formats_give_the_same(sumgp, oscillator: Path, tmp_path: Path) -> None:
    frame = pd.read_csv(oscillator)
    frame.to_csv(tmp_path / "table.tsv", index=False, sep="\t")
    frame.to_csv(tmp_path / "table.txt", index=False)
    frame.to_parquet(tmp_path / "table.parquet")
    frame.to_excel(tmp_path / "table.xlsx", index=False)
    words = ["--inputs", "t", "--plug-in", "--grid", "4", "--kernel", "rbf"]
    assert sumgp("fit", oscillator, *words, "--out", tmp_path / "csv").code == 0
    expected = pd.read_csv(tmp_path / "csv" / "predictions.csv")
    for ending in ("tsv", "txt", "parquet", "xlsx"):
        assert sumgp("fit", tmp_path / f"table.{ending}", *words, "--out", tmp_path / ending).code == 0
        pd.testing.assert_frame_equal(pd.read_csv(tmp_path / ending / "predictions.csv"), expected, rtol=1e-9)


def test_byte_order_mark_semicolon_and_decimal_comma(sumgp, oscillator: Path, tmp_path: Path) -> None:
    frame = pd.read_csv(oscillator, float_precision="round_trip")  # older pandas reads last digits otherwise
    path = tmp_path / "european.csv"
    frame.to_csv(path, index=False, sep=";", decimal=",", encoding="utf-8-sig")
    words = ["--inputs", "t", "--plug-in", "--grid", "4", "--kernel", "rbf"]
    assert sumgp("fit", oscillator, *words, "--out", tmp_path / "a").code == 0
    result = sumgp("fit", path, *words, "--separator", ";", "--decimal", ",", "--out", tmp_path / "b")
    assert result.code == 0, result.err
    assert (tmp_path / "a/predictions.csv").read_bytes() == (tmp_path / "b/predictions.csv").read_bytes()


def test_check_explains(sumgp, oscillator: Path) -> None:
    words = [
        "check",
        "z**2/2 + v**2/2 = E",
        "--outputs",
        "z,v",
        "--inputs",
        "t",
        "--constant",
        "E=0.8",
        "--data",
        oscillator,
    ]
    result = sumgp(*words)
    assert result.code == 0
    for phrase in ("0.5 * z**2: square", "total: 0.8", "Linearized", "8 complete rows"):
        assert phrase in result.out
    found = json.loads(sumgp(*words, "--json").out)
    frame = pd.read_csv(oscillator).dropna()
    expected = (0.5 * frame["z"] ** 2 + 0.5 * frame["v"] ** 2 - 0.8).mean()
    assert found["data"][0]["mean"] == pytest.approx(expected, rel=1e-12)
    assert found["strategy"] == "Linearized"


def test_check_takes_dates_and_compares_misses_with_terms(sumgp, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("day,a,b\n2024-01-01,60,41\n2024-02-01,70,31\n2024-03-01,50,\n")
    words = ["check", "a + b = 100", "--outputs", "a,b", "--inputs", "day", "--data", table]
    found = json.loads(sumgp(*words, "--json").out)["data"][0]
    assert found == {"complete_rows": 2, "mean": 1.0, "mean_size": 1.0, "share_of_largest_term": 0.01}
    assert "1 % of its largest term" in " ".join(sumgp(*words).out.split())


def test_report_is_written_again(sumgp, quick_fit, tmp_path: Path) -> None:
    out = shutil.copytree(quick_fit[1], tmp_path / "results")
    title = re.search("<title>.*</title>", (out / "report.html").read_text())
    (out / "report.html").unlink()
    result = sumgp("report", out)
    assert result.code == 0, result.err
    page = (out / "report.html").read_text()
    assert title is not None
    assert ".csv: z, v over t" in title[0]
    assert title[0] in page
    assert "How well the law holds" in page
    assert sumgp("report", tmp_path).code == 2


@pytest.mark.parametrize(("kind", "words"), [("real", "recordings of a real"), ("simulated", "SIMULATED")])
def test_report_of_records_says_what_data_they_are_of(sumgp, tmp_path: Path, monkeypatch, kind: str, words: str) -> None:
    monkeypatch.delenv("SUMGP_DATA_DIR", raising=False)
    scores = {"rmse": 0.1, "rmse_norm": 0.2, "violation": 0.1, "violation_own": 0.0}
    record = Record("double_pendulum", None, None, 0, "linearized", "integrated", kind, "converged", **scores)
    RecordFile(tmp_path / "records.jsonl").append([record])
    assert sumgp("report", tmp_path).code == 0
    page = (tmp_path / "report.html").read_text()
    assert words in page
    assert ("SIMULATED" in page) == (kind == "simulated")
    if kind == "real":
        refused = sumgp("report", tmp_path, "--figures")
        assert refused.code == 2
        assert "SUMGP_DATA_DIR" in refused.err


def test_page_is_self_contained_and_escaped(sumgp, tmp_path: Path) -> None:
    name = "<script>alert(1)</script>"
    x = np.linspace(0, 1, 8)
    pd.DataFrame({"x": x, name: np.sin(x), "b[red]": 1.0 - np.sin(x)}).to_csv(tmp_path / "d.csv", index=False)
    law = f"`{name}` + `b[red]` = 1"
    words = ["--inputs", "x", "--plug-in", "--grid", 5, "--kernel", "rbf", "--out", tmp_path / "o"]
    result = sumgp("fit", tmp_path / "d.csv", "-c", law, *words)
    assert result.code == 0, result.err
    page = (tmp_path / "o/report.html").read_text()
    assert "alert(1)</script" not in page
    # Two scripts of the package, and figures as data; what is left is markup.
    markup = re.sub(r"<script>.*?</script>|<script type=\"application/json\">[^<]*</script>", "", page, flags=re.S)
    assert "<script" not in markup
    assert not re.search(r"(?:src|href|srcset)=\"(?!data:|#)", markup)
    assert not re.search(r"@import|url\((?!#|data:)", markup)
    assert "b[red]" in result.out


def test_folder_with_files_needs_force(sumgp, quick_fit, fit_words, tmp_path: Path) -> None:
    out = shutil.copytree(quick_fit[1], tmp_path / "results")
    before = {path: path.read_bytes() for path in out.iterdir()}
    result = sumgp(*fit_words, "--out", out)
    assert result.code == 2
    assert "--force" in result.err
    assert {path: path.read_bytes() for path in out.iterdir()} == before
    assert sumgp(*fit_words, "--out", out, "--force", "--seed", "1").code == 0


def test_demo(sumgp, tmp_path: Path) -> None:
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo/report.html").write_text("of the last time")
    result = sumgp("demo", "--out", tmp_path / "demo")
    assert result.code == 0, result.err
    errors = {m[1]: float(m[2]) for m in re.finditer(r"│ ([a-z ]+?) +│ +([0-9.]+) │", result.out)}
    assert set(errors) == {"raw measurements", "unconstrained", "projected", "linearized"}
    frame = package.datasets.oscillator().frame
    gp = package.ConstrainedGP(None, outputs=["z", "v"], inputs=["t"]).fit(frame[["t"]], frame[["z", "v"]])
    grid = np.linspace(0.0, 10.0, 200)
    assert errors["unconstrained"] == pytest.approx(np.sqrt(np.mean((gp.predict(grid) - truth(grid, 0.8)) ** 2)), abs=1e-4)
    assert errors["linearized"] < errors["projected"] < errors["unconstrained"]
    page = (tmp_path / "demo/report.html").read_text()
    # Three figures, light and dark.
    assert page.count("data:image/svg+xml;base64,") == 2 * 3


def test_help_names_every_command(sumgp) -> None:
    result = sumgp("--help")
    assert result.code == 0
    assert all(name in result.out for name in COMMANDS)
    assert {"--version", "-h"} <= set(re.findall(r"(?<![\w-])--?[a-z]+", result.out))
    assert sumgp("-h").out == result.out


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_ends_with_examples_that_its_options_allow(sumgp, name: str) -> None:
    result = sumgp(name, "--help")
    assert result.code == 0
    assert sumgp(name, "-h").out == result.out
    above, _, below = result.out.partition("Examples:")
    assert f"sumgp {name}" in below
    used = {word for example in COMMANDS[name]["examples"] for word in re.findall(r"(?<!\S)--?[a-z][a-z-]*", example)}
    assert used <= set(re.findall(r"(?<!\S)--?[a-z][a-z-]*", above))


def test_version(sumgp) -> None:
    assert sumgp("--version").out == f"sumgp {VERSION}\n"


def test_a_mistyped_command_is_corrected(sumgp) -> None:
    assert "Did you mean 'predict'?" in sumgp("predit").err


@pytest.mark.parametrize(
    ("words", "phrase"),
    [
        (["fti"], "fti"),
        (["fit"], "data"),
        (["fit", "x.csv", "--out", "o"], "--inputs"),
        (["fit", "x.csv", "--inputs", "t", "--out", "o", "--grid", "many"], "--grid"),
        (["predict", "a"], "new"),
        (["check", "a = 1"], "--outputs"),
        (["--unheard-of"], "--unheard-of"),
    ],
)
def test_wrong_usage(sumgp, words: list[str], phrase: str) -> None:
    result = sumgp(*words)
    assert result.code == 2
    assert result.err.startswith("error: ")
    assert result.err.count("\n") == 1
    assert phrase in result.err.lower()  # the name of an argument is in capitals in older versions of Typer


def test_debug_shows_the_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        app.main(["check", "a +", "--outputs", "a", "--debug"])
    assert stop.value.code == 2
    assert "Traceback" in capsys.readouterr().err


def test_errors_in_formulas_take_one_line() -> None:
    assert one_line("unknown name\n    a + q = 1\n        ^") == "unknown name (in 'a + q = 1', character 5)"


def test_interruption_while_files_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def interrupted(handle: int) -> None:
        calls.append(handle)
        if len(calls) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(files.os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        files.write_files(tmp_path / "new", {"a": b"1", "b": b"2", "c": b"3"})
    assert list(tmp_path.iterdir()) == []


def test_interrupt_key_leaves_nothing(oscillator: Path, tmp_path: Path) -> None:
    words = ["fit", oscillator, "-c", "z**2 + v**2 = 1.6", "--inputs", "t", "--out", tmp_path / "o", "--grid", 100000]
    start = "from sumgp.cli.app import main; print('ready', flush=True); main()"
    command = [sys.executable, "-c", start, *map(str, words)]
    # A shell that runs the tests in the background ignores the key, and children would inherit that.
    program = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert program.stdout is not None
    assert program.stdout.readline() == "ready\n"
    # In the middle of importing a library the key may be lost to that library: pressed again if nothing comes of it.
    for _ in range(6):
        time.sleep(1.0)
        program.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            program.wait(timeout=15.0)
            break
    _, err = program.communicate(timeout=60)
    assert program.returncode == 130, err
    assert "Traceback" not in err
    assert err.startswith("stopped")
    assert "run the same command again" in err
    assert not (tmp_path / "o").exists()


def test_interrupt_key_that_a_compiled_module_swallows_is_pressed_again() -> None:
    """It printed a traceback and the command went on."""
    program = """
import sys, time
from sumgp.cli.app import press_again
class Swallowing:
    def __del__(self): raise KeyboardInterrupt
sys.unraisablehook = press_again
try:
    Swallowing()
    time.sleep(10.0)
    print("forgotten")
except KeyboardInterrupt:
    print("stopped")
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (found.stdout, found.stderr) == ("stopped\n", "")


def test_names_and_constants() -> None:
    assert arguments.names("a, b,`c, d`", "--outputs") == ["a", "b", "c, d"]
    assert arguments.constants(["E=0.8", "s=total", "c=unknown"]) == {"E": 0.8, "s": "total", "c": "unknown"}
    assert arguments.noise("0.1,0.2") == [0.1, 0.2]
    assert str(kernel_named("rbf + matern32")[1]) == "Matern(length_scale=1, nu=1.5)"
