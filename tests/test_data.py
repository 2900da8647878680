"""Reading inputs and outputs, names, and the scaling that hides units."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from sumgp.data.table import Data, choose_scaling, output_groups, read_inputs, read_outputs
from sumgp.errors import DataError


@pytest.mark.parametrize(
    ("X", "names", "columns"),
    [
        (np.arange(3.0), ("x",), [[0.0], [1.0], [2.0]]),
        ([[0, 1], [2, 3]], ("x1", "x2"), [[0.0, 1.0], [2.0, 3.0]]),
        (pd.Series([1, 2], name="t"), ("t",), [[1.0], [2.0]]),
        (pd.Series([1, 2]), ("x",), [[1.0], [2.0]]),
        (pd.DataFrame({"a": [1], "b": [2]}), ("a", "b"), [[1.0, 2.0]]),
        (pd.DataFrame(np.ones((1, 2))), ("0", "1"), [[1.0, 1.0]]),
    ],
)
def test_inputs_in_every_form(X: Any, names: tuple[str, ...], columns: list[list[float]]) -> None:
    values, found = read_inputs(X, None)
    assert found == names
    np.testing.assert_array_equal(values, columns)
    again, _ = read_inputs(X, names)
    np.testing.assert_array_equal(again, columns)


def test_frames_are_read_by_name_and_extra_columns_come_last() -> None:
    frame = pd.DataFrame({"E": [9.0, 8.0], "t": [1.0, 2.0], "unused": [0.0, 0.0]})
    values, names = read_inputs(frame, ("t",), ("E",))
    assert names == ("t",)
    np.testing.assert_array_equal(values, [[1.0, 9.0], [2.0, 8.0]])


def test_outputs_keep_names_and_missing_entries() -> None:
    frame = pd.DataFrame({"v": [1.0, np.nan], "z": [3.0, 4.0]})
    values, names = read_outputs(frame, ("z", "v"), 2)
    assert names == ("z", "v")
    np.testing.assert_array_equal(values, [[3.0, 1.0], [4.0, np.nan]])
    assert read_outputs(pd.Series([1.0, 2.0], name="mass"), None, 2)[1] == ("mass",)
    assert read_outputs([1.0, 2.0], None, 2)[1] == ("y",)
    assert read_outputs([[1.0, 2.0]], None, 1)[1] == ("y1", "y2")


BAD_INPUTS: dict[str, tuple[Any, str]] = {
    "NaN": ([[0.0], [np.nan]], "NaN or infinity .* row 1"),
    "infinity": ([np.inf, 0.0], "NaN or infinity .* row 0"),
    "text": ([["a"], ["b"]], "expected numbers"),
    "objects": (np.array([[{}]], dtype=object), "expected numbers"),
    "ragged": ([[1.0], [1.0, 2.0]], "expected numbers"),
    "complex": ([[1j]], "real numbers"),
    "sparse": (sparse.csr_matrix(np.eye(2)), "toarray"),
    "no rows": (np.zeros((0, 1)), "at least one row"),
    "no columns": (np.zeros((2, 0)), "0 feature"),
    "one number": (3.0, "wrap it"),
    "a cube": (np.zeros((2, 2, 2)), "reshape"),
    "duplicated names": (pd.DataFrame(np.ones((2, 2)), columns=["a", "a"]), "rename"),
    "dates": (pd.DataFrame({"t": pd.to_datetime(["2020-01-01"])}), "numbers"),
}


@pytest.mark.parametrize("name", BAD_INPUTS)
def test_bad_inputs_are_refused_in_words(name: str) -> None:
    X, message = BAD_INPUTS[name]
    with pytest.raises(DataError, match=rf"(?s)^X: .*{message}"):
        read_inputs(X, None)


BAD_OUTPUTS: dict[str, tuple[Any, str]] = {
    "infinity": ([[1.0, np.inf], [0.0, 0.0]], "infinity in row 0, output 'b'"),
    "length": ([[1.0, 2.0]], "2 rows as in X"),
    "width": ([[1.0], [2.0]], "one column per output"),
    "text": ([["a", "b"], ["c", "d"]], "numbers"),
    "sparse": (sparse.csr_matrix(np.eye(2)), "toarray"),
    "nothing": (None, "is None"),
    "a cube": (np.zeros((2, 2, 2)), "one column per output"),
    "name": (pd.DataFrame({"a": [1, 2], "c": [1, 2]}), "no column 'b'"),
    "complex": ([[1j, 1], [1, 1]], "real numbers"),
}


@pytest.mark.parametrize("name", BAD_OUTPUTS)
def test_bad_outputs_are_refused_in_words(name: str) -> None:
    Y, message = BAD_OUTPUTS[name]
    with pytest.raises(DataError, match=rf"(?s)^Y: .*{message}"):
        read_outputs(Y, ("a", "b"), 2)


def test_wrong_number_of_columns_names_what_is_needed() -> None:
    with pytest.raises(DataError, match=r"has 3 features, but ConstrainedGP is expecting 2 .*\['t', 'E'\]"):
        read_inputs(np.ones((2, 3)), ("t",), ("E",))
    with pytest.raises(DataError, match="at least one input"):
        read_inputs(np.ones(2), None, ("E",))
    with pytest.raises(DataError, match="no column 'E'"):
        read_inputs(pd.DataFrame({"t": [1.0]}), ("t",), ("E",))


def scaled(y: np.ndarray, x: np.ndarray | None = None, groups: Any = None) -> Any:
    y = np.asarray(y, dtype=float)
    x = np.arange(float(len(y)))[:, None] if x is None else x
    data = Data(x, y, tuple(f"x{i}" for i in range(x.shape[1])), tuple("abcdef"[: y.shape[1]]))
    return choose_scaling(data, output_groups(groups, data.output_names), unit_inputs=True)


@pytest.mark.parametrize("unit", [1e-12, 1e-3, 1.0, 1e12])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_scaling_removes_units_and_is_undone_by_restore(unit: float, offset: float) -> None:
    rng = np.random.default_rng(0)
    base = rng.standard_normal((8, 2))
    base[2, 0] = np.nan
    y = unit * (base + offset)
    scaling = scaled(y)
    u = scaling.outputs(y)
    np.testing.assert_allclose(np.nanmean(u, axis=0), 0.0, atol=1e-10)
    np.testing.assert_allclose(np.nanstd(u, axis=0), 1.0, rtol=1e-10)
    np.testing.assert_allclose(scaling.restore(u), y, rtol=1e-12)


@pytest.mark.parametrize("offset", [0.0, 1e9])
def test_inputs_become_a_unit_range_around_zero(offset: float) -> None:
    x = offset + np.array([[0.0, 5.0], [2.0, 5.0], [4.0, 5.0]])
    u = scaled(np.arange(3.0)[:, None], x).inputs(x)
    np.testing.assert_allclose(u[:, 0], [-0.5, 0.0, 0.5])
    np.testing.assert_allclose(u[:, 1], 0.0)


@pytest.mark.parametrize(("constant", "scale"), [(0.0, 1.0), (3.0, 3.0), (-2e-9, 2e-9)])
def test_a_constant_output_is_scaled_by_its_size(constant: float, scale: float) -> None:
    assert scaled(np.full((4, 1), constant)).y_scale == pytest.approx([scale])


def test_groups_share_one_scale_but_not_the_mean() -> None:
    y = np.array([[0.0, 10.0, 5.0], [2.0, 16.0, 7.0]])
    scaling = scaled(y, groups=[["a", 1]])
    np.testing.assert_allclose(scaling.y_shift, [1.0, 13.0, 6.0])
    np.testing.assert_allclose(scaling.y_scale, [np.sqrt((1 + 9) / 2), np.sqrt((1 + 9) / 2), 1.0])


def test_output_groups() -> None:
    assert output_groups(None, "ab") == ((0,), (1,))
    assert output_groups([["c", 0]], "abc") == ((2, 0), (1,))
    for bad, message in [
        ([["q"]], "names among"),
        ([["a", "a"]], "at most one"),
        ([["a"], [0]], "at most one"),
        ([[7]], "at most"),
    ]:
        with pytest.raises(DataError, match=message):
            output_groups(bad, "ab")


def test_masked_values_are_not_measured() -> None:
    """What a mask hides (often a code for "missing") was taken as measured."""
    Y = np.ma.masked_equal([[1, 2], [-9999, 4], [5, 6]], -9999)
    values, _ = read_outputs(Y, None, 3)
    np.testing.assert_array_equal(values, [[1.0, 2.0], [np.nan, 4.0], [5.0, 6.0]])
    with pytest.raises(DataError, match=r"NaN or infinity .* in row 1"):
        read_inputs(np.ma.masked_equal([0.0, -9999.0, 2.0], -9999.0), None)
