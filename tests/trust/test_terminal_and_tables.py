"""The program on plain terminals, and tables that spreadsheets open."""

import io
import sys

import numpy as np
import pandas as pd
import pytest

from sumgp.cli.app import main, run
from sumgp.cli.tables import as_csv, read_table

T = np.linspace(0.0, 6.0, 10)


def write(path, names):
    frame = pd.DataFrame(np.column_stack([T, np.sin(T), np.cos(T)]), columns=names)
    frame.to_csv(path, index=False)
    return str(path)


def test_a_terminal_that_knows_ascii_only(tmp_path, monkeypatch):
    table = write(tmp_path / "data.csv", ["t", "größe", "b"])
    words = [
        "fit",
        table,
        "--inputs",
        "t",
        "-c",
        "`größe` + b = t",
        "--plug-in",
        "--grid",
        "5",
        "--kernel",
        "rbf",
        "--out",
        str(tmp_path / "out"),
    ]
    screen = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", screen)
    with pytest.raises(SystemExit) as end:
        main(words)
    assert end.value.code == 0
    screen.flush()
    assert rb"gr\xf6\xdfe" in screen.buffer.getvalue()
    assert (tmp_path / "out" / "predictions.csv").read_bytes().decode("utf-8").startswith("t,größe,")


@pytest.mark.parametrize("sign", ["=", "+", "-", "@"])
def test_names_that_spreadsheets_would_run(sign):
    frame = pd.DataFrame({"t": [1.0, -2.0], f"{sign}a": [0.5, -0.25], f"{sign}a_sd": [1.0, 2.0]})
    header, first, second, _ = as_csv(frame).decode().split("\n")
    assert header == f"t,'{sign}a,'{sign}a_sd"
    assert (first, second) == ("1.0,0.5,1.0", "-2.0,-0.25,2.0")


def test_such_names_are_said_and_read_back(tmp_path, capsys):
    table = write(tmp_path / "data.csv", ["@t", "=a", "b"])
    out = tmp_path / "out"
    words = ["fit", table, "--inputs", "@t", "-c", "`=a` + b = `@t`", "--plug-in", "--grid", "5", "--kernel", "rbf"]
    assert run([*words, "--out", str(out)]) == 0
    assert "apostrophe in front" in capsys.readouterr().out
    assert (out / "predictions.csv").read_text().startswith("'@t,'=a,'=a_sd,")
    assert list(read_table(out / "predictions.csv").columns[:3]) == ["@t", "=a", "=a_sd"]
    assert run(["report", str(out)]) == 0
    assert run(["predict", str(out / "model.sumgp"), str(out / "predictions.csv"), "-o", str(tmp_path / "again.csv")]) == 0
    assert "apostrophe in front" in capsys.readouterr().out
