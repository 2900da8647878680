"""Means, comparisons and tables against numbers worked out by hand."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

from sumgp_studies.experiments import all_problems
from sumgp_studies.experiments.records import Record
from sumgp_studies.report.summary import caveats, cell_scores, comparisons, coverage_curves
from sumgp_studies.report.tables import comma_separated, markdown, tables_of


def record(experiment="harmonic_oscillator", noise=0.05, missing=0.0, dataset=0, method="linearized", **values) -> Record:
    defaults = {"uncertainty": "integrated", "data": "simulated", "status": "converged", "rmse": 0.02, "rmse_norm": 0.03}
    return Record(experiment, noise, missing, dataset, method, **(defaults | values))


def tables(records, recordings=None):
    return tables_of(all_problems(recordings), cell_scores(records))


def test_mean_and_spread_over_data_sets_and_failures_counted():
    records = [record(dataset=i, rmse=value) for i, value in enumerate((0.01, 0.03, 0.05))]
    records.append(record(dataset=3, status="failed: NumericalError: x", rmse=None, rmse_norm=None))
    (entry,) = cell_scores(records)
    assert entry.scores["rmse"].mean == pytest.approx(0.03)
    assert entry.scores["rmse"].std == pytest.approx(np.sqrt(8 / 3) / 100)
    assert (entry.scores["rmse"].n, entry.failures) == (3, 1)


def test_ratio_to_the_paper_by_hand():
    records = [record(rmse=0.0115), record(noise=0.1, rmse=0.088), record(method="unconstrained", rmse=0.016)]
    found = {entry.method: entry for entry in comparisons(cell_scores(records))}
    assert [ratio for *_, ratio in found["linearized"].ratios] == pytest.approx([0.5, 2.0])
    assert found["linearized"].better == 1
    assert found["linearized"].geometric_mean == pytest.approx(1.0)
    assert found["unconstrained"].geometric_mean == pytest.approx(0.5)
    expected = "linearized: RMSE below the paper's GP-c in 1 of 2 cells, geometric mean ratio 1.00"
    assert found["linearized"].sentence() == expected


def test_ratios_of_few_data_sets_have_a_caveat():
    """Two sets with errors 1 and 3: mean 2, sd 1.41 and so a standard error of 1, half of the mean."""
    two = [record(dataset=i, rmse=value) for i, value in enumerate((0.01, 0.03))]
    (text,) = caveats(cell_scores(two))
    assert "2 data sets a cell" in text
    assert "about 50 %" in text
    assert "one data set a cell" in caveats(cell_scores(two[:1]))[0]
    assert caveats(cell_scores([record(dataset=i, rmse=0.01 + i) for i in range(20)])) == []


def test_triangle_and_pendulum_are_compared_by_the_root_of_the_sum():
    records = [record("triangle", 1e-3, None, rmse=9.0, rmse_norm=0.011, violation=5.0, violation_length=0.0004)]
    (entry,) = comparisons(cell_scores(records))
    assert entry.ratios[0][2] == pytest.approx(2.0)
    table = tables(records)[0]
    sections = {section.score: section for section in table.sections}
    assert [row.label for row in sections["rmse_norm"].rows if row.published] == [
        "paper: GP-c",
        "paper: GP-u",
        "paper: GP-tr",
    ]
    assert not any(row.published for row in sections["rmse"].rows)
    assert any(row.published for row in sections["violation_length"].rows)
    assert not any(row.published for row in sections["violation"].rows)


def test_engines_are_compared_with_their_own_column():
    records = [record("approximations", method=f"transformed-{engine}", rmse=0.024) for engine in ("laplace", "variational")]
    found = {entry.method: entry.ratios[0][2] for entry in comparisons(cell_scores(records))}
    assert found["transformed-laplace"] == pytest.approx(1.0)
    assert found["transformed-variational"] == pytest.approx(24 / 38)


def test_best_of_a_column_is_marked_over_published_and_own():
    records = [record(rmse=0.01), record(method="unconstrained", rmse=0.05), record(noise=0.1, rmse=0.5)]
    rows = tables(records)[0].sections[0].rows
    best = {row.label: [entry is not None and entry.best for entry in row.entries] for row in rows}
    assert best["linearized"] == [True, False]
    assert best["paper: GP-c"] == [False, True]
    assert best["unconstrained"] == [False, False]


def test_round_off_violations_are_equally_good():
    records = [
        record(violation=3e-16),
        record(method="projected", violation=1e-15),
        record(method="unconstrained", violation=0.01),
    ]
    section = next(s for s in tables(records)[0].sections if s.score == "violation")
    marks = {row.label: row.entries[0].best for row in section.rows}
    assert marks["linearized"]
    assert marks["projected"]
    assert not marks["unconstrained"]


def test_means_that_read_the_same_are_equally_good():
    records = [record(rmse=0.011512), record(method="projected", rmse=0.011514), record(method="unconstrained", rmse=0.0116)]
    rows = tables(records)[0].sections[0].rows
    assert {row.label for row in rows if row.entries[0].best} == {"linearized", "projected"}


def test_digits_are_those_that_the_spread_leaves_a_meaning():
    records = [record(dataset=i, nlpd=value) for i, value in enumerate((8.548, -7.94))]
    section = next(s for s in tables(records)[0].sections if s.score == "nlpd")
    assert section.rows[0].entries[0].text("nlpd") == "0.30 ± 8.24"


def test_simulated_pendulum_stands_without_published_numbers(tmp_path):
    records = [record("double_pendulum", None, None, rmse_norm=0.1)]
    table = tables(records)[0]
    assert not any(row.published for section in table.sections for row in section.rows)
    assert "SIMULATED" in markdown([table], [])
    assert comparisons(cell_scores(records), frozenset({"double_pendulum"})) == []
    assert any(row.published for section in tables(records, tmp_path)[0].sections for row in section.rows)


def test_real_and_simulated_pendulum_are_never_averaged():
    records = [
        record("double_pendulum", None, None, data=kind, rmse_norm=value)
        for kind, value in (("real", 0.3), ("simulated", 9.0))
    ]
    (entry,) = cell_scores(records)
    assert entry.scores["rmse_norm"].mean == 0.3


def test_plug_in_records_are_shown_as_such():
    names = [entry.method for entry in cell_scores([record(), record(uncertainty="plug-in")])]
    assert names == ["linearized", "linearized (plug-in)"]


def test_markdown_has_bold_counts_and_no_markup_from_outside():
    records = [record(), record(dataset=1), record(dataset=2, method="a|<b>", status="failed: x", rmse=None)]
    text = markdown(tables(records), comparisons(cell_scores(records)), ["a <script>"])
    assert "| linearized | **0.0200 ± 0.0000** | 2 |" in text
    assert "| paper: GP-c | 0.023 ± 0.006 |  |" in text
    assert "a\\|&lt;b>" in text
    assert "<script>" not in text


def test_csv_holds_every_number():
    rows = list(csv.DictReader(io.StringIO(comma_separated(tables([record(coverage=0.94)])))))
    own = [row for row in rows if row["source"] == "own"]
    assert {(row["score"], float(row["mean"])) for row in own} == {("rmse", 0.02), ("coverage", 0.94)}
    published = [row for row in rows if row["source"] == "paper" and row["score"] == "rmse"]
    assert [(row["method"], row["mean"], row["best"]) for row in published] == [
        ("GP-c", "0.023", "0"),
        ("GP-u", "0.032", "0"),
    ]


def test_coverage_curves_average_over_data_sets():
    records = [record(coverages={"0.5": 0.4}), record(dataset=1, coverages={"0.5": 0.6}), record(method="cubic-spline")]
    assert coverage_curves(records) == {"linearized": {0.5: 0.5}}
