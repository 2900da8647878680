"""Broken and hostile inputs: each one line of reason, exit code 2, and nothing half written."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sumgp.cli import outputs, tables
from sumgp.cli.app import run
from sumgp.files import archive as files

GOOD = "t,z,v\n" + "".join(f"{t},{np.sin(t):.3f},{1 - np.sin(t):.3f}\n" for t in range(8))
Case = tuple[str, bytes | str, str]

FILES: list[Case] = [
    ("empty file", b"", "empty file"),
    ("header only", "t,z,v\n", "without rows"),
    ("blank header", "\n1,2,3\n", "header"),
    ("no header", "1,2,3\n4,5,6\n", "names of the columns"),
    ("semicolons", GOOD.replace(",", ";"), "--separator"),
    ("tabs in csv", GOOD.replace(",", "\t"), "--separator tab"),
    ("text in a number column", GOOD.replace("0.000", "high", 1), "'high' in row 1"),
    ("missing column", GOOD.replace("t,z,v", "t,z,w"), "column 'v'"),
    ("duplicated header", GOOD.replace("t,z,v", "t,z,z"), "'z' twice"),
    ("nothing measured", "t,z,v\n1,,\n2,,\n3,,\n", "measured"),
    ("empty input cell", GOOD.replace("\n3,", "\n,"), "empty cell in row 4"),
    ("all inputs missing", "t,z,v\n,1,2\n,2,3\n", "empty cell"),
    ("decimal comma", 't,z,v\n"0,5","1,5","2"\n"1,5","2,5","1"\n', "--decimal ,"),
    ("thousands", 't,z,v\n0,"1,234.5",2\n1,2,3\n', "'1,234.5'"),
    ("thousands in all rows", 't,z,v\n0,"1,234.5",2\n1,"1,300.2",3\n', "write plain numbers"),
    ("whole thousands", 't,z,v\n0,"1,234",2\n1,"1,300",3\n', "without a comma between thousands"),
    ("per cent", "t,z,v\n0,30.5%,2\n1,31%,3\n", "write plain numbers"),
    ("typographic minus", "t,z,v\n0,\u22121.5,2\n1,\u22121.2,3\n", "write plain numbers"),
    ("lines before the header", "# a logger\n" + GOOD, "the first line holds the names"),
    ("million columns", "t,z,v," + ",".join(f"c{i}" for i in range(1_000_000)) + "\n1,2,3\n", "keep only the columns"),
    ("many columns", "t,z,v," + ",".join(f"c{i}" for i in range(20_000)) + "\n1,2,3\n", "at most 10000 columns"),
    ("utf-16", GOOD.encode("utf-16"), "UTF-8"),
    ("latin-1", ("t,z,v,höhe\n1,2,3,4\n").encode("latin-1"), "UTF-8"),
    ("latin-1 in a row", (GOOD + "9,ä,1\n").encode("latin-1"), "UTF-8"),
    ("binary", bytes(range(256)) * 20, ""),
    ("zero bytes", b"t,z,v\0\n1,2,3\n", "zero bytes"),
    ("row too long", GOOD + "9,1,2,3,4\n", "columns"),
    ("every row too long", "t,z,v\n1,2,3,4\n2,3,4,5\n", "columns"),
    ("open quote", GOOD + '9,"1,2\n', ""),
    ("infinity", GOOD.replace("0.000", "inf", 1), "infinity"),
    ("overflowing number", GOOD.replace("0.000", "1e999", 1), "infinity"),
    ("page instead of a table", "<html><body>\n404\n</body></html>\n", "column"),
    ("formula of a spreadsheet", GOOD.replace("0.000", "=SUM(A1:A3)", 1), "numbers"),
    ("dates", GOOD.replace("\n0,", "\n2024-01-01,"), "numbers in column 't'"),
]  # fmt: skip


def refused(result, out: Path, phrase: str) -> None:
    assert result.code == 2, result
    assert result.err.startswith("error: ")
    assert result.err.count("\n") == 1, "one line"
    assert phrase in result.err
    assert "Traceback" not in result.err
    assert not out.exists()


@pytest.mark.parametrize(("name", "content", "phrase"), FILES, ids=[case[0] for case in FILES])
def test_broken_tables(sumgp, tmp_path: Path, name: str, content: bytes | str, phrase: str) -> None:
    path = tmp_path / "data.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    out = tmp_path / "out"
    result = sumgp(
        "fit", path, "-c", "z + v = 1", "--inputs", "t", "--outputs", "z,v", "--plug-in", "--grid", 5, "--out", out
    )
    refused(result, out, phrase)


def good(tmp_path: Path) -> Path:
    path = tmp_path / "data.csv"
    path.write_text(GOOD)
    return path


def test_the_good_table_is_accepted(sumgp, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["--inputs", "t", "--outputs", "z,v", "--plug-in", "--grid", 5, "--kernel", "rbf", "--out", out]
    table = good(tmp_path)
    table.write_text(GOOD.replace("0.000", "#N/A", 1) + ",,\n,,\n\n")  # as spreadsheets write empty rows and errors
    assert sumgp("fit", table, "-c", "z + v = 1", *words).code == 0


WORDS: list[tuple[str, list[str], str]] = [
    ("no such file", ["nothing.csv"], "nothing of that name"),
    ("a folder", ["."], "folder"),
    ("unknown ending", ["data.doc"], "'.doc'"),
    ("damaged parquet", ["bad.parquet"], "cannot be read"),
    ("damaged excel", ["bad.xlsx"], "cannot be read"),
    ("unknown name in the law", ["data.csv", "-c", "z + q = 1"], "q"),
    ("syntax error", ["data.csv", "-c", "z + = 1"], "z + = 1"),
    ("law that runs code", ["data.csv", "-c", "__import__('os').system('true') = z"], ""),
    ("law without solution", ["data.csv", "-c", "z**2 + v**2 = -1"], "no solution"),
    ("contradicting laws", ["data.csv", "-c", "z + v = 1", "-c", "z + v = 2"], "contradicts"),
    ("empty law", ["data.csv", "-c", ""], "equation"),
    ("constant without value", ["data.csv", "-c", "z + v = E", "--constant", "E"], "NAME=VALUE"),
    ("constant of no column", ["data.csv", "-c", "z + v = E", "--constant", "E=total"], "'total'"),
    ("constant twice", ["data.csv", "--constant", "E=1", "--constant", "E=2"], "twice"),
    ("unknown kernel", ["data.csv", "--kernel", "cubic"], "cubic"),
    ("unknown strategy", ["data.csv", "--strategy", "magic"], "magic"),
    ("strategy without law", ["data.csv", "--strategy", "conditioned"], "needs a law"),
    ("negative noise", ["data.csv", "--noise", "-1"], "noise"),
    ("words as noise", ["data.csv", "--noise", "much"], "noise"),
    ("too many noises", ["data.csv", "--noise", "1,2,3"], "noise"),
    ("grid of nothing", ["data.csv", "--grid", "0"], "--grid"),
    ("input is output", ["data.csv", "--outputs", "t,z"], "'t'"),
    ("points of no file", ["data.csv", "--at", "nothing.csv"], "nothing.csv"),
    ("points without input", ["data.csv", "--at", "points.csv"], "column 't'"),
    ("separator of two signs", ["data.csv", "--separator", ";;"], "--separator"),
]


@pytest.mark.parametrize(("name", "words", "phrase"), WORDS, ids=[case[0] for case in WORDS])
def test_broken_words(
    sumgp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, words: list[str], phrase: str
) -> None:
    monkeypatch.chdir(tmp_path)
    good(tmp_path)
    (tmp_path / "data.doc").write_text(GOOD)
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 not really PAR1")
    (tmp_path / "bad.xlsx").write_bytes(b"PK\x03\x04 not really")
    pd.DataFrame({"s": [1.0]}).to_csv(tmp_path / "points.csv", index=False)
    default = [] if "--outputs" in words else ["--outputs", "z,v"]
    result = sumgp("fit", *words, "--inputs", "t", *default, "--plug-in", "--out", "out")
    refused(result, tmp_path / "out", phrase)


@pytest.mark.parametrize("name", ["file in the way", "no permission", "full disk", "folder with files", "interrupted disk"])
def test_outputs_that_cannot_be_written(sumgp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    path, out = good(tmp_path), tmp_path / "out"
    if name == "file in the way":
        out.write_text("mine")
    elif name == "folder with files":
        out.mkdir()
        (out / "old.txt").write_text("mine")
    elif name == "no permission":
        monkeypatch.setattr(outputs.os, "access", lambda path, mode: mode == os.R_OK)
    else:
        monkeypatch.setattr(files.os, "fsync", _failing(errno.ENOSPC if name == "full disk" else errno.EIO))
    before = sorted(p for p in tmp_path.rglob("*"))
    words = ["--inputs", "t", "--outputs", "z,v", "--plug-in", "--grid", 5, "--kernel", "rbf", "--out", out]
    result = sumgp("fit", path, "-c", "z + v = 1", *words)
    assert result.code == 2
    assert result.err.startswith("error: ")
    assert result.err.count("\n") == 1
    assert sorted(p for p in tmp_path.rglob("*")) == before


def _failing(number: int) -> Callable[[int], None]:
    def fail(handle: int) -> None:
        raise OSError(number, os.strerror(number))

    return fail


def test_unreadable_file(sumgp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = good(tmp_path)
    monkeypatch.setattr(tables.os, "access", lambda path, mode: mode != os.R_OK)
    refused(sumgp("fit", path, "--inputs", "t", "--out", tmp_path / "out"), tmp_path / "out", "not readable")


def test_too_large_a_file(sumgp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "LARGEST_FILE", 10)
    refused(sumgp("fit", good(tmp_path), "--inputs", "t", "--out", tmp_path / "out"), tmp_path / "out", "GB")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("saved")
    words = ["--inputs", "t", "--outputs", "z,v", "--plug-in", "--grid", "5", "--kernel", "rbf"]
    assert run(["fit", str(good(folder)), *words, "--out", str(folder / "out")]) == 0
    return (folder / "out" / "model.sumgp").read_bytes()


@pytest.mark.parametrize("name", ["damaged model", "missing input", "file exists", "no folder"])
def test_predict_refuses(sumgp, tmp_path: Path, saved: bytes, name: str) -> None:
    model, new, target = tmp_path / "model.sumgp", good(tmp_path), tmp_path / "new.csv"
    model.write_bytes(saved)
    if name == "damaged model":
        model.write_bytes(model.read_bytes()[:-100])
    elif name == "missing input":
        new = tmp_path / "points.csv"
        new.write_text("s\n1\n")
    elif name == "file exists":
        target.write_text("mine")
    else:
        target = tmp_path / "none" / "new.csv"
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    result = sumgp("predict", model, new, "-o", target)
    assert result.code == 2
    assert result.err.startswith("error: ")
    assert result.err.count("\n") == 1
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before
