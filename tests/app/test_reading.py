"""Files as people have them, and files that are none."""

from __future__ import annotations

import io
import json
import socket
import tomllib
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from app.person import Person, trouble

from sumgp.app import reading
from sumgp.app.choice import info_from
from sumgp.app.command import _socket
from sumgp.app.feedback import choice_of, first_choice
from sumgp.app.reading import TABLE, points_table, read_upload
from sumgp.app.server import STATIC, python_lines
from sumgp.app.store import plain_name
from sumgp.errors import DataError


def read(folder: Path, content: bytes, name: str = "upload.csv"):
    """Description and numbers of a table, as the worker makes them."""
    (folder / name).write_bytes(content)
    answer = read_upload(folder, {"file": name, "shown": "mine.csv", "rows": 100, "columns": 5})
    return info_from(json.loads(json.dumps(answer))["info"]), pd.read_csv(folder / TABLE)


@pytest.mark.parametrize(
    ("text", "reading"),
    [
        ("t,z\n0,1.5\n1,\n", {}),
        ("t;z\n0;1,5\n1;\n", {"sep": ";", "decimal": ","}),
        ("t\tz\n0\t1.5\n1\t-\n", {"sep": "\t"}),
        ('"t";"z"\n0;1.5\n1;NA\n', {"sep": ";"}),
        ("\ufefft, z\n0, 1.5\n1, ?\n", {}),
    ],
)
def test_separators_and_decimal_signs_are_found(tmp_path: Path, text: str, reading: dict) -> None:
    info, frame = read(tmp_path, text.encode())
    assert [c.name for c in info.columns] == ["t", "z"]
    assert {k: v for k, v in info.reading.items() if k in ("sep", "decimal")} == reading
    np.testing.assert_array_equal(frame["z"], [1.5, np.nan])
    # What the lines of Python read is the same table.
    again = pd.read_csv(io.StringIO(text.removeprefix("\ufeff")), **info.reading)
    pd.testing.assert_frame_equal(again, frame, check_dtype=False)


def test_excel_and_parquet(tmp_path: Path) -> None:
    frame = pd.DataFrame({"t": [0.0, 1.0], "z": [1.5, np.nan], "who": ["a", "b"]})
    frame.to_excel(tmp_path / "a.xlsx", index=False)
    frame.to_parquet(tmp_path / "a.parquet")
    for name in ("a.xlsx", "a.parquet"):
        info, found = read(tmp_path, (tmp_path / name).read_bytes(), f"upload{Path(name).suffix}")
        assert info.numbers == ("t", "z")
        np.testing.assert_array_equal(found["z"], frame["z"])


def test_dates_are_counted_in_days(tmp_path: Path) -> None:
    info, frame = read(tmp_path, b"day,z\n2020-01-30,1\n2020-01-28 12:00,2\n,3\n")
    assert info.columns[0].origin == "2020-01-28T12:00:00"
    np.testing.assert_array_equal(frame["day"], [1.5, 0.0, np.nan])


@pytest.mark.parametrize(
    ("content", "name", "said"),
    [
        (b"", "a.csv", "an empty file"),
        (b"t,z\n", "a.csv", "a header without rows"),
        (b"1,2\n3,4\n", "a.csv", "the names of the columns in the first line"),
        (b"t,t\n3,4\n", "a.csv", "'t' twice"),
        (b"t,\n3,4\n", "a.csv", "a name for every column"),
        (b"who,what\na,b\n", "a.csv", "words in every column"),
        (b"t,z\n1,2,3\n", "a.csv", "not a table of 2 columns"),
        (b"t,z\n" + b"1,2\n" * 101, "a.csv", "at most 100 rows"),
        (b"a,b,c,d,e,f\n1,2,3,4,5,6\n", "a.csv", "at most 5 columns"),
        (b"t,z\n\xff\xfe,2\n", "a.csv", "UTF-8"),
        (b"\x00\x01\x02", "a.csv", "zero bytes"),
        (b"no excel", "a.xlsx", "cannot be read as .xlsx"),
        (b"t,z\n1,2\n", "a.exe", "a table ending in"),
    ],
)
def test_bad_files_are_explained_in_the_users_words(tmp_path: Path, content: bytes, name: str, said: str) -> None:
    with pytest.raises(DataError) as error:
        read(tmp_path, content, f"upload{Path(name).suffix}")
    assert said in str(error.value)
    assert str(tmp_path) not in str(error.value)
    assert str(error.value).startswith("mine.csv")


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("../../etc/passwd.csv", "passwd.csv"),
        ("C:\\Users\\me\\data.xlsx", "data.xlsx"),
        ("<b>x</b>.csv", "b.csv"),
        ("..", "table.csv"),
        ("a\r\nb.csv", "ab.csv"),
        ("x" * 300 + ".csv", "x" * 76 + ".csv"),
    ],
)
def test_only_a_plain_name_is_kept(given: str, kept: str) -> None:
    assert plain_name(given) == kept


def test_points_are_rows_of_numbers() -> None:
    assert points_table("1 2\n\n3;4\n", ["a", "b c"]) == b"a,b c\n1,2\n3,4\n"
    with pytest.raises(DataError, match=r"line 2: expected 1 number \(t\), got '2 3'"):
        points_table("1\n2 3", ["t"])
    with pytest.raises(DataError, match="at least one line"):
        points_table(" \n", ["t"])


def test_hostile_names_stay_text_on_the_page_and_in_python(person: Person) -> None:
    bad = "<script>alert(1)</script>"
    quote = "'); import os #"
    content = pd.DataFrame({"t": [0, 1, 2], bad: [1, 2, 3], quote: [3, 2, 1]}).to_csv(index=False).encode()
    answer = person.upload(content, "<img src=x onerror=alert(1)>.csv")
    key = answer.headers["location"].split("/")[-1]
    table = person.workspace.tables[key]
    assert "<" not in table.shown
    page = person.ask(f"/tables/{key}").text
    assert bad not in page
    assert page.count("&lt;script&gt;") >= 2
    form = {"role-0": "input", "role-1": "output", "role-2": "output", "law": f"`{bad}` = {bad}"}
    found = person.send(f"/tables/{key}/law", form).json()
    assert found["state"] == "mistake"
    assert "<script" not in found["feedback"] + found["constants"]
    lines = python_lines(first_choice(table.info), table.info, table.shown)
    compile(lines, "fit.py", "exec")
    assert repr([bad, quote]) in lines


def test_a_bad_upload_says_why_on_the_page(person: Person) -> None:
    answer = person.upload(b"t,z\n1,2,3\n", "mine.csv")
    assert answer.status_code == 400
    assert "mine.csv: not a table of 2 columns" in trouble(answer.text)
    assert str(person.workspace.folder) not in answer.text
    assert "Choose a file first" in person.send("/tables").text
    assert "no such data set" in person.send("/examples", {"name": "../x"}).text


def test_fields_that_are_not_on_the_page_are_not_taken(tmp_path: Path) -> None:
    from starlette.datastructures import FormData

    info, _ = read(tmp_path, b"t,z,who\n0,1,a\n1,2,b\n")
    fields = [("role-0", "input"), ("role-1", "owner"), ("role-2", "output"), ("role-9", "output"), ("kernel", "os")]
    fields += [("constant-name", "E"), ("constant-kind", "x"), ("constant-number", ""), ("constant-column", "who")]
    choice = choice_of(FormData(fields), info)
    assert (choice.inputs, choice.outputs, choice.kernel) == (("t",), (), "")
    assert (choice.constants[0].kind, choice.constants[0].column) == ("number", "")


def test_a_workbook_that_unpacks_to_very_much_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "UNPACKED_BYTES", 1_000_000)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as book:
        book.writestr("xl/worksheets/sheet1.xml", "A" * 2_000_000)
    with pytest.raises(DataError, match=r"mine.csv: expected at most 1 MB unpacked, got 2 MB"):
        read(tmp_path, packed.getvalue(), "upload.xlsx")


def test_the_address_takes_connections_before_the_server_runs() -> None:
    """A browser is opened at once; one that is quicker than the server must not be refused."""
    with _socket(0) as listening, socket.create_connection(listening.getsockname(), timeout=5):
        pass


def test_every_file_that_the_page_serves_is_in_the_built_package() -> None:
    settings = tomllib.loads((Path(__file__).resolve().parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    endings = {Path(pattern).suffix for pattern in settings["tool"]["setuptools"]["package-data"]["sumgp"]}
    assert {Path(path).suffix for _, path, _ in STATIC.values()} <= endings
