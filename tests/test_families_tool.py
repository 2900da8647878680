"""The families of tools/families: truths on their laws, records that are kept, a page that says what they hold."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))

import never_worse
import sumgp
from families import FAMILIES, Family
from families.score import low_if_exact
from families.table import Summary, page
from sumgp.laws import FormulaConstraint


def named(name: str) -> Family:
    return next(f for f in FAMILIES if f.name == name)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.name)
def test_the_truth_is_smooth_and_on_the_law(family: Family) -> None:
    problem = family.problem(1000)
    law = FormulaConstraint(list(family.laws), problem.constants).bind(list(family.outputs), list(family.inputs))
    f = problem.truth
    if law.unknowns:
        # An unknown constant is a column of the law: the one value that fits the first point fits all.
        f = np.column_stack([f, np.full(len(f), 0.5 * np.sum(f[0] ** 2))])
    residual = np.abs(law.residual(f, problem.x_test)) / law.magnitude(f, problem.x_test)
    assert np.max(residual) < 1e-7
    assert problem.y.shape == (family.rows, len(family.outputs))
    assert np.all(problem.truth.std(axis=0) > 0)
    if family.n_inputs == 1:
        # 100 points resolve the function: every other value is what a cubic through its neighbours says.
        t = problem.truth
        cubic = (9.0 * (t[2:-4:2] + t[4:-2:2]) - t[:-6:2] - t[6::2]) / 16.0
        assert np.all(np.abs(cubic - t[3:-3:2]) < 0.02 * t.std(axis=0))


def test_at_least_forty_families_over_the_range_of_sizes() -> None:
    assert len({f.name for f in FAMILIES}) == len(FAMILIES) >= 40
    assert {f.n_inputs for f in FAMILIES} == {1, 2, 3}
    assert min(f.rows for f in FAMILIES) == 5
    assert max(f.rows for f in FAMILIES) == 100
    assert {len(f.outputs) for f in FAMILIES} >= {2, 3, 4, 5, 6, 8}


def test_seeds_and_families_differ_and_repeat() -> None:
    one, again, other = (named("circle").problem(seed) for seed in (1000, 1000, 1001))
    np.testing.assert_array_equal(one.y, again.y)
    assert np.std(one.y - other.y) > 0.1
    assert np.std(one.y[:10] - named("constant product").problem(1000).y) > 0.1


def test_a_run_goes_on_where_it_ended(tmp_path: Path) -> None:
    records, text = tmp_path / "r.jsonl", tmp_path / "page.md"
    command = ["families", "--only", "five rows", "--first-seed", "1000", "--records", str(records), "--page", str(text)]
    never_worse.main([*command, "--datasets", "1"])
    first = records.read_text()
    never_worse.main([*command, "--datasets", "2"])
    lines = records.read_text().splitlines()
    assert records.read_text().startswith(first)
    assert [json.loads(line)["seed"] for line in lines] == [1000, 1001]
    assert "2 problems, seeds 1000 to 1001" in text.read_text()


def test_the_page_has_the_figures_of_the_records() -> None:
    def record(seed: int, ratio: float, coverage: float) -> dict:
        fit = {"rmse": 0.1, "coverage": 0.95, "cpu_seconds": 1.0, "low_if_exact": 0.05}
        return {"family": "circle", "seed": seed, "no law": fit, "law": fit | {"rmse": 0.1 * ratio, "coverage": coverage}}

    records = [record(0, 0.5, 0.8), record(1, 2.0, 1.0)]
    summary = Summary.of(records)
    assert summary.ratio == pytest.approx(1.0)
    text = page([named("circle")], records)
    assert "| problems with a ratio above 1.2 | 50.0% | at most 1 % |" in text
    assert "| problems with coverage below 85% | 50.0% | at most 5 % |" in text
    assert "| largest ratio | 2.00 | at most 2 |" in text
    assert "| circle | `a**2 + b**2 = 1` | 18 | 2 | 1 | 1.00 | 2.00 | 90.0% | 80% | 95.0% | 1.00 |" in text


def test_chance_of_low_coverage_is_found_from_draws() -> None:
    """Intervals that hold half of each value seldom hold 85 % of all; those that hold all but 1e-5 always do."""
    problem = named("circle, six rows").problem(1000)
    gp = sumgp.ConstrainedGP("a**2 + b**2 = 1", outputs=["a", "b"]).fit(problem.x, problem.y)
    posterior = gp.posterior(problem.x_test)
    assert low_if_exact(posterior, *posterior.interval(0.5)) > 0.8
    assert low_if_exact(posterior, *posterior.interval(1.0 - 1e-5)) == 0.0
    assert 0.0 < low_if_exact(posterior, *posterior.interval(0.95)) < 0.4
