"""Tables people have: any dataframe library, dates, decimals and gaps give the numbers that a plain array gives."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xarray as xr

import sumgp
from sumgp.cli.app import run
from sumgp.data import read_columns
from sumgp.data.calendar import chosen_dates

N = 9
T = np.linspace(0.0, 8.0, N)
NOISE = 0.05 * np.random.default_rng(4).standard_normal((N, 2))
Y = np.column_stack([0.5 + 0.4 * np.sin(T), 0.5 - 0.4 * np.sin(T)]) + NOISE
Y[2, 0] = np.nan
DAYS = pd.date_range("2024-03-29", periods=N, freq="D")
FRAME = pd.DataFrame({"t": T, "a": Y[:, 0], "b": Y[:, 1], "site": "north"})


def model(**settings) -> sumgp.ConstrainedGP:
    given = {"outputs": ["a", "b"], "inputs": ["t"], "uncertainty": "plug-in", "restarts": 0}
    return sumgp.ConstrainedGP("a + b = 1", **{**given, **settings})


REFERENCE = model().fit(T[:, None], Y).predict(T[:, None])

TABLES = {
    "pandas": FRAME,
    "nullable": FRAME.convert_dtypes(),
    "decimals": FRAME.assign(a=[None if np.isnan(v) else Decimal(repr(float(v))) for v in Y[:, 0]]).astype({"a": object}),
    "arrow columns": FRAME.convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.from_dict({name: FRAME[name].to_list() for name in FRAME}, strict=False),
    "polars, nulls": pl.DataFrame({**FRAME.to_dict("list"), "a": [None if np.isnan(v) else float(v) for v in Y[:, 0]]}),
    "polars, lazy": pl.DataFrame(FRAME.to_dict("list")).lazy(),
    "pyarrow": pa.Table.from_pandas(FRAME),
    "xarray": xr.Dataset({"a": ("t", Y[:, 0]), "b": ("t", Y[:, 1])}, coords={"t": T}),
}


@pytest.mark.parametrize("kind", TABLES)
def test_every_table_gives_the_same_numbers(kind: str) -> None:
    table = TABLES[kind]
    gp = model().fit(table, table)
    np.testing.assert_allclose(gp.predict(table), REFERENCE, rtol=1e-12)


def test_arrays_of_xarray() -> None:
    labelled = xr.DataArray(Y, dims=("t", "output"), coords={"output": ["a", "b"]})
    x = xr.DataArray(T, dims="t", name="t")
    gp = sumgp.ConstrainedGP("a + b = 1", uncertainty="plug-in", restarts=0).fit(x, labelled)
    assert gp.data_.input_names == ("t",)
    np.testing.assert_allclose(gp.predict(x), REFERENCE, rtol=1e-12)
    with pytest.raises(sumgp.DataError, match="one or two dimensions"):
        gp.predict(xr.DataArray(np.ones((2, 2, 2))))


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_text_columns_are_refused_by_name(library) -> None:
    table = library({"t": T, "a": ["low"] * N, "b": Y[:, 1]})
    with pytest.raises(sumgp.DataError, match=r"Y: expected numbers in column 'a', got text \('low' in row 0\)"):
        model().fit(table, table)
    with pytest.raises(sumgp.DataError, match="numbers in column 'site'"):
        sumgp.ConstrainedGP(uncertainty="plug-in").fit(FRAME[["t", "site"]], Y)


def test_a_category_and_a_time_difference_are_refused_by_name() -> None:
    for column in (pd.Categorical(["u"] * N), pd.to_timedelta(T, unit="h")):
        with pytest.raises(sumgp.DataError, match="numbers in column 't'"):
            model().fit(FRAME.assign(t=column), Y)


DATES = {
    "pandas": pd.DataFrame({"t": DAYS}),
    "pandas, months of the clock change": pd.DataFrame({"t": DAYS.tz_localize("UTC").tz_convert("Europe/Berlin")}),
    "periods": pd.DataFrame({"t": DAYS.to_period("D")}),
    "objects": pd.DataFrame({"t": pd.Series([d.date() for d in DAYS], dtype=object)}),
    "index": DAYS,
    "numpy": DAYS.to_numpy(),
    "numpy table": DAYS.to_numpy()[:, None],
    "list": [d.to_pydatetime() for d in DAYS],
    "text": pd.DataFrame({"t": DAYS.strftime("%Y-%m-%d")}),
    "list of text": list(DAYS.strftime("%Y-%m-%d")),
    "polars text": pl.DataFrame({"t": list(DAYS.strftime("%Y-%m-%dT%H:%M"))}),
    "polars dates": pl.DataFrame({"t": [d.date() for d in DAYS]}),
    "polars times": pl.DataFrame({"t": [d.to_pydatetime() for d in DAYS]}),
    "polars zoned": pl.DataFrame({"t": [d.to_pydatetime().replace(tzinfo=ZoneInfo("Europe/Rome")) for d in DAYS]}),
    "xarray": xr.Dataset(coords={"t": DAYS}),
}  # fmt: skip


@pytest.mark.parametrize("kind", DATES)
def test_dates_are_days_since_the_first(kind: str) -> None:
    gp = model().fit(DATES[kind], Y)
    np.testing.assert_allclose(gp.data_.x[:, 0], T, atol=0.05)  # one day has 23 hours where clocks change
    assert str(gp.calendar_["t"]).startswith("days since 2024-03-2")
    if "zone" in kind or "clock" in kind:
        assert gp.calendar_["t"].zone is not None
    else:
        np.testing.assert_allclose(gp.predict(DATES[kind]), REFERENCE, rtol=1e-12)
    frame = gp.posterior(DATES[kind]).to_frame()
    assert pd.api.types.is_datetime64_any_dtype(frame["t"])
    assert frame["t"].iloc[0].strftime("%Y-%m-%d") == "2024-03-29"
    assert len(set(frame["t"].dt.strftime("%Y-%m-%d"))) == N


def test_predictions_at_dates_between_and_as_numbers_agree() -> None:
    gp = model().fit(pd.DataFrame({"t": DAYS}), Y)
    noon = pd.DataFrame({"t": DAYS + pd.Timedelta(hours=12)})
    np.testing.assert_array_equal(gp.predict(noon), gp.predict(T[:, None] + 0.5))


def test_text_asks_a_model_of_dates() -> None:
    """Text was refused as "numbers in column 't'"."""
    gp = model().fit(pd.DataFrame({"t": DAYS}), Y)
    for asked in (pd.DataFrame({"t": ["2024-03-31", "2024-04-02 12:00"]}), ["2024-03-31", "2024-04-02T12:00"]):
        np.testing.assert_array_equal(gp.predict(asked), gp.predict(np.array([[2.0], [4.5]])))
    zoned = model().fit(pd.DataFrame({"t": DAYS.tz_localize("UTC")}), Y)
    np.testing.assert_array_equal(zoned.predict(["2024-04-02T14:00+02:00"]), gp.predict([[4.5]]))
    with pytest.raises(sumgp.DataError, match=r"dates in column 't', as in the fit, got text such as '31\.03\.2024'"):
        gp.predict(pd.DataFrame({"t": ["31.03.2024"]}))
    with pytest.raises(sumgp.DataError, match="times in UTC, got no time zone"):
        zoned.predict(["2024-04-02"])


def test_dates_of_two_time_zones_are_refused() -> None:
    """pandas said that datetime.datetime cannot be converted."""
    days = [day.tz_localize(zone) for day, zone in zip(DAYS, ["UTC", "Europe/Rome"] * N, strict=False)]
    with pytest.raises(sumgp.DataError, match="dates of one time zone in 't', got several"):
        model().fit(pd.DataFrame({"t": pd.Series(days, dtype=object)}), Y)


def test_outputs_without_any_value_are_no_dates() -> None:
    never = FRAME.assign(b=pd.Series([None] * N, dtype=object))
    assert not np.isfinite(model().fit(FRAME[["t"]], never).data_.y[:, 1]).any()


def test_dates_and_numbers_are_not_mixed_up() -> None:
    dated, plain = model().fit(pd.DataFrame({"t": DAYS}), Y), model().fit(FRAME[["t"]], Y)
    with pytest.raises(sumgp.DataError, match="expected dates in column 't'"):
        dated.predict(FRAME[["t"]])
    with pytest.raises(sumgp.DataError, match="expected numbers in column 't', as in the fit, got dates"):
        plain.predict(pd.DataFrame({"t": DAYS}))
    with pytest.raises(sumgp.DataError, match="expected times without a zone, got times in UTC"):
        dated.predict(pd.DataFrame({"t": DAYS.tz_localize("UTC")}))
    with pytest.raises(sumgp.DataError, match="a date in every row of 't', got none in row 1"):
        dated.predict(pd.DataFrame({"t": [DAYS[0], pd.NaT]}))
    with pytest.raises(sumgp.DataError, match="dates in 'a'"):
        model().fit(FRAME[["t"]], FRAME.assign(a=DAYS))


@pytest.mark.parametrize(
    ("step", "unit"), [("10s", "seconds"), ("1min", "minutes"), ("1h", "hours"), ("1D", "days"), ("366D", "days")]
)
def test_unit_follows_from_the_range_and_dates_come_back(step: str, unit: str) -> None:
    times = pd.date_range("2024-02-28 23:59:59.25", periods=5, freq=step)
    dates = chosen_dates(times.to_numpy(), None)
    assert dates.unit == unit
    numbers = dates.numbers(times.to_numpy())
    assert numbers[0] == 0.0
    assert 3.0 <= numbers[-1] < 2000.0
    assert list(dates.times(numbers)) == list(times)


def test_dates_survive_a_model_file(tmp_path: Path) -> None:
    zoned = pd.DataFrame({"t": DAYS.tz_localize("Europe/Berlin")})
    gp = model().fit(zoned, Y)
    gp.save(tmp_path / "m.sumgp")
    again = sumgp.load(tmp_path / "m.sumgp")
    pd.testing.assert_frame_equal(again.posterior(zoned).to_frame(), gp.posterior(zoned).to_frame())
    assert again.calendar_ == gp.calendar_
    assert "days since 2024-03-28 23:00:00 UTC" in str(again.fit_report_)


def test_the_dates_of_the_data_set_of_the_package() -> None:
    data = sumgp.datasets.epidemic()
    few = data.frame.iloc[::12]
    gp = data.model(uncertainty="plug-in", restarts=0).fit(few[data.X.columns], few[data.outputs])
    assert str(gp.calendar_["date"]) == "days since 2020-01-22"
    assert np.abs(gp.posterior(few).residual()).max() < 1e-9


def fit_words(folder: Path, grid: str) -> list[str]:
    given = ["-c", "a + b = 1", "--inputs", "t", "--plug-in", "--grid", grid]
    return ["fit", str(folder / "d.csv"), "--out", str(folder / "o"), *given]


def test_command_line_reads_and_writes_dates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    FRAME.assign(t=DAYS.strftime("%Y-%m-%d")).drop(columns="site").to_csv(tmp_path / "d.csv", index=False)
    pd.DataFrame({"t": ["2024-04-01 06:00", "2024-04-02"]}).to_csv(tmp_path / "new.csv", index=False)
    words = [
        "fit",
        tmp_path / "d.csv",
        "-c",
        "a + b = 1",
        "--inputs",
        "t",
        "--out",
        tmp_path / "o",
        "--plug-in",
        "--grid",
        "9",
    ]
    assert run([str(word) for word in words]) == 0, capsys.readouterr().err
    written = pd.read_csv(tmp_path / "o" / "predictions.csv", parse_dates=["t"])
    assert list(written["t"]) == list(DAYS)
    words = ["predict", tmp_path / "o" / "model.sumgp", tmp_path / "new.csv", "-o", tmp_path / "p.csv"]
    assert run([str(word) for word in words]) == 0, capsys.readouterr().err
    assert pd.read_csv(tmp_path / "p.csv")["t"].to_list() == ["2024-04-01 06:00:00", "2024-04-02 00:00:00"]
    assert run(["report", str(tmp_path / "o")]) == 0, capsys.readouterr().err
    page = (tmp_path / "o" / "report.html").read_text(encoding="utf-8")
    assert '"type":"date"' in page
    assert f'"x":["{DAYS[0].isoformat()}.000"' in page
    assert "days along t" in page


def test_command_line_reads_times_with_changing_offsets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    times = [d.isoformat() for d in DAYS.tz_localize("Europe/Berlin")]
    assert {t[-6:] for t in times} == {"+01:00", "+02:00"}
    FRAME.assign(t=times).drop(columns="site").to_csv(tmp_path / "d.csv", index=False)
    words = [
        "fit",
        tmp_path / "d.csv",
        "-c",
        "a + b = 1",
        "--inputs",
        "t",
        "--out",
        tmp_path / "o",
        "--plug-in",
        "--grid",
        "3",
    ]
    assert run([str(word) for word in words]) == 0, capsys.readouterr().err
    assert sumgp.load(tmp_path / "o" / "model.sumgp").calendar_["t"].zone == "UTC"


def test_command_line_refuses_dates_of_unknown_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    FRAME.assign(t=DAYS.strftime("%d/%m/%Y")).to_csv(tmp_path / "d.csv", index=False)
    words = ["fit", str(tmp_path / "d.csv"), "--inputs", "t", "--outputs", "a,b", "--out", str(tmp_path / "o")]
    assert run(words) == 2
    assert "year-month-day" in capsys.readouterr().err


@pytest.mark.parametrize(("ending", "extra"), [(".xlsx", "excel"), (".parquet", "parquet")])
def test_missing_readers_name_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], ending: str, extra: str
) -> None:
    def absent(*words: object, **named: object) -> None:
        raise ImportError("no engine")

    monkeypatch.setattr(pd, "read_excel", absent)
    monkeypatch.setattr(pd, "read_parquet", absent)
    (tmp_path / f"d{ending}").write_bytes(b"x")
    assert run(["fit", str(tmp_path / f"d{ending}"), "--inputs", "t", "--out", str(tmp_path / "o")]) == 2
    assert f'pip install "sumgp[{extra}]"' in capsys.readouterr().err


def test_a_column_is_suggested_for_a_missing_constant(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = FRAME.drop(columns="site").assign(total=1.0)
    with pytest.raises(sumgp.ConstraintError, match=r"did you mean constants={'total': 'total'}"):
        sumgp.ConstrainedGP("a + b = total", outputs=["a", "b"], inputs=["t"]).fit(table, table)
    table.to_csv(tmp_path / "d.csv", index=False)
    words = ["-c", "a + b = total", "--inputs", "t", "--outputs", "a,b", "--out", str(tmp_path / "o")]
    assert run(["fit", str(tmp_path / "d.csv"), *words]) == 2
    assert "--constant total=total" in capsys.readouterr().err


def test_arrays_pass_unchanged() -> None:
    assert read_columns(T, None, "X").table is T
    assert read_columns([[1.0]], None, "X").calendar == {}
    assert read_columns(None, None, "Y").table is None
    assert isinstance(DATES["list"][0], datetime.datetime)
