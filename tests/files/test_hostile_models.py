"""Damaged, truncated and hostile model files: a DataError of one line, never another exception."""

from __future__ import annotations

import copy
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sumgp
from sumgp.files import model_bytes


@pytest.fixture(scope="module")
def good() -> bytes:
    t = np.linspace(0.0, 6.0, 8)
    Y = np.sqrt(1.6) * np.column_stack([np.sin(t), np.cos(t)])
    gp = sumgp.ConstrainedGP("z**2 + v**2 = 1.6", outputs=["z", "v"], inputs=["t"], uncertainty="plug-in", noise=0.05)
    return model_bytes(gp.fit(t, Y))


def entries(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        return {name: file.read(name) for name in file.namelist()}


def zipped(parts: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as file:
        for name, content in parts.items():
            file.writestr(name, content)
    return buffer.getvalue()


def npy(array: np.ndarray, **options: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


def refused(content: bytes, tmp_path: Path) -> str:
    path = tmp_path / "model.sumgp"
    path.write_bytes(content)
    with pytest.raises((sumgp.DataError, sumgp.ConstraintError)) as caught:
        sumgp.load(path)
    message = str(caught.value)
    assert "\n" not in message
    assert str(path) in message
    return message


def test_the_good_file_loads(good: bytes, tmp_path: Path) -> None:
    (tmp_path / "model.sumgp").write_bytes(good)
    assert np.isfinite(sumgp.load(tmp_path / "model.sumgp").predict([1.0])).all()


@pytest.mark.parametrize("share", [0.0, 0.001, 0.1, 0.5, 0.9, 0.999])
def test_truncated(good: bytes, tmp_path: Path, share: float) -> None:
    refused(good[: int(share * len(good))], tmp_path)


def test_flipped_bits(good: bytes, tmp_path: Path) -> None:
    """A changed byte anywhere is either noticed or without effect on the predictions."""
    path = tmp_path / "model.sumgp"
    path.write_bytes(good)
    expected = sumgp.load(path).predict([1.0])
    noticed = 0
    for position in np.random.default_rng(0).integers(0, len(good), 60):
        changed = bytearray(good)
        changed[position] ^= 0x10
        path.write_bytes(bytes(changed))
        try:
            assert np.array_equal(sumgp.load(path).predict([1.0]), expected)
        except (sumgp.DataError, sumgp.ConstraintError):
            noticed += 1
    assert noticed > 40


def test_bombs_and_names(good: bytes, tmp_path: Path) -> None:
    parts = entries(good)
    assert "compressed" in refused(zipped(parts, zipfile.ZIP_DEFLATED), tmp_path)
    assert "compressed" in refused(zipped({**parts, "arrays/999.npy": bytes(10**7)}, zipfile.ZIP_DEFLATED), tmp_path)
    for name in (
        "../evil.npy",
        "/etc/passwd",
        "arrays/../x.npy",
        "arrays/01.npy",
        "code.py",
        "arrays/1.npy/",
        "arrays\\1.npy",
    ):
        assert "unexpected entry" in refused(zipped({**parts, name: b""}), tmp_path)
    twice = zipped({**parts, "model.jsom": b"{}"}).replace(b"model.jsom", b"model.json")
    assert "same name" in refused(twice, tmp_path)


def test_claimed_sizes(good: bytes, tmp_path: Path) -> None:
    parts = entries(good)
    huge = npy(np.zeros(3)).replace(b"'shape': (3,), ", b"'shape': (9999999999,), ")
    assert "shape" in refused(zipped({**parts, "arrays/0.npy": huge}), tmp_path)
    assert "shape" in refused(zipped({**parts, "arrays/0.npy": npy(np.zeros(3))[:-4]}), tmp_path)
    assert "header" in refused(zipped({**parts, "arrays/0.npy": b"\x93NUMPY\x01\x00\xff\xff{"}), tmp_path)


@pytest.mark.parametrize(
    "array", [np.array(["text"]), np.zeros(3, dtype=">f8"), np.zeros(3, dtype="f4"), np.zeros(2, dtype="c16")]
)
def test_other_kinds_of_numbers(good: bytes, tmp_path: Path, array: np.ndarray) -> None:
    assert "kind" in refused(zipped({**entries(good), "arrays/0.npy": npy(array)}), tmp_path)


def test_objects_in_arrays(good: bytes, tmp_path: Path) -> None:
    with_code = npy(np.zeros(1)).replace(b"'<f8'", b"'|O' ")
    assert "kind" in refused(zipped({**entries(good), "arrays/0.npy": with_code}), tmp_path)


def test_missing_parts(good: bytes, tmp_path: Path) -> None:
    parts = entries(good)
    for name in ("model.json", "arrays/0.npy", "arrays/3.npy"):
        assert "missing" in refused(zipped({k: v for k, v in parts.items() if k != name}), tmp_path)


def set_version(d: dict) -> None:
    d["version"] = 2


def set_format(d: dict) -> None:
    d["format"] = "other"


def drop_data(d: dict) -> None:
    del d["data"]


def other_class(d: dict) -> None:
    d["components"][0]["$"] = "Popen"


def other_kernel(d: dict) -> None:
    d["components"][0]["posterior"]["features"]["terms"]["items"][0]["kernel"]["kernel"]["class"] = "WhiteKernel"


def bad_lengthscale(d: dict) -> None:
    d["components"][0]["posterior"]["features"]["terms"]["items"][0]["kernel"]["kernel"]["parameters"]["length_scale"] = "x"


def field_too_many(d: dict) -> None:
    d["components"][0]["extra"] = 1


def wrong_type(d: dict) -> None:
    d["components"][0]["n_outputs"] = "two"


def wrong_array(d: dict) -> None:
    d["components"][0]["posterior"]["root"]["number"] = 0


def no_such_array(d: dict) -> None:
    d["components"][0]["posterior"]["root"]["number"] = 10**6


def negative_array(d: dict) -> None:
    d["components"][0]["posterior"]["root"]["number"] = -1


def other_law(d: dict) -> None:
    d["constraint"]["texts"] = ["z**2 + v**2 = 1.5"]


def code_as_law(d: dict) -> None:
    d["constraint"]["texts"] = ["__import__('os').system('true') = z"]


def other_outputs(d: dict) -> None:
    d["data"]["output_names"]["items"] = ["a", "b"]


def no_components(d: dict) -> None:
    d["components"] = []


def report_missing(d: dict) -> None:
    d["report"] = {}


def not_a_strategy(d: dict) -> None:
    d["chosen"] = copy.deepcopy(d["scaling"])


def deep(d: dict) -> None:
    node: Any = 1
    for _ in range(60):
        node = [node]
    d["settings"]["groups"] = node


CHANGES = [
    set_version, set_format, drop_data, other_class, other_kernel, bad_lengthscale, field_too_many, wrong_type, wrong_array,
    no_such_array, negative_array, other_law, code_as_law, other_outputs, no_components, report_missing, not_a_strategy,
    deep,
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_changed_document(good: bytes, tmp_path: Path, change: Callable[[dict], None]) -> None:
    parts = entries(good)
    document = json.loads(parts["model.json"])
    change(document)
    refused(zipped({**parts, "model.json": json.dumps(document).encode()}), tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 9999, '{"format": "sumgp model", "version": 1}', "\xff\xfe"])
def test_other_documents(good: bytes, tmp_path: Path, text: str) -> None:
    refused(zipped({**entries(good), "model.json": text.encode("latin-1")}), tmp_path)


def test_no_file_and_folders(tmp_path: Path) -> None:
    with pytest.raises(sumgp.DataError, match="cannot be read"):
        sumgp.load(tmp_path / "nothing.sumgp")
    with pytest.raises(sumgp.DataError):
        sumgp.load(tmp_path)
