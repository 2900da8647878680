"""Cases of public sets from small files made here: laws hold, noise and gaps are as said; competitors for equations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import solve_ivp

from sumgp.laws import FormulaConstraint
from sumgp_studies.public import Case, Part, PublicSet, plan, read_hierarchy, scored, sets_named
from sumgp_studies.public.competitors import COMPETITORS
from sumgp_studies.public.equations import (
    PROTEIN_CONSTANTS,
    PROTEIN_STATES,
    catalysis_rates,
    fitzhugh_rates,
    linear_rates,
    lotka_rates,
    protein_rates,
)
from sumgp_studies.public.methods import Prediction, with_ends
from sumgp_studies.public.page import ratios, scores_table, write_page
from sumgp_studies.public.run import run_public_task, thinned
from sumgp_studies.public.system import System, least_squares_fit

SETS = ("distillation", "pooling", "fitzhugh_nagumo", "protein_transduction", "lotka_volterra", "ode_system", "catalysis",
        "heat", "pde_greenberg",
        "helmholtz", "drifters", "magnetometer", "jura", "gemas")  # fmt: skip


def solution(rates, span, start, times, constants=()):
    return solve_ivp(lambda t, z: rates(t, z, constants), span, start, t_eval=times, rtol=1e-10, atol=1e-10).y.T


def write_simulators(folder, generator):
    x = generator.uniform(1, 2, (400, 4))
    pool = (3 * x[:, 0] + x[:, 1]) / (x[:, 0] + x[:, 1])
    y2 = 0.4 * x.sum(axis=1) / 4
    y3 = x[:, 0] + x[:, 1] - y2
    table = np.column_stack([x, pool, y2, y3, x[:, 2] - y2, x[:, 3] - y3])
    names = [*(f"x{k}" for k in range(1, 5)), *(f"y{k}" for k in range(1, 6))]
    (folder / "pooling").mkdir()
    pd.DataFrame(table, columns=names).to_csv(folder / "pooling" / "pooling.csv", index=False)
    (folder / "distillation").mkdir()
    y = generator.uniform(0.1, 0.9, (400, 9))
    named = dict(zip([f"y{k}" for k in range(1, 10)], y.T, strict=True))
    pd.DataFrame({"x1": x[:, 0], "x2": x[:, 1], "x3": x[:, 2], **named}).to_csv(
        folder / "distillation" / "distillation.csv", index=False
    )


def write_equations(folder):
    (folder / "dae").mkdir()
    for name, rates, span, start in (
        ("lotka_volterra", lotka_rates, (0, 60), (10, 10)),
        ("catalysis", catalysis_rates, (0, 1000), (1.0,)),
        ("ode_system", linear_rates, (-4, 4), (1.0, 0.5, 0.0, 0.0)),
    ):
        t = np.linspace(*span, 500)
        z = solution(rates, span, start, t)
        columns = ["y1", "y2", "d1y1dx1", "d1y2dx1"][: z.shape[1]]
        pd.DataFrame(np.column_stack([t, z]), columns=["x1", *columns]).to_csv(folder / "dae" / f"{name}.csv", index=False)
    t, x = (axis.ravel() for axis in np.meshgrid(np.linspace(0, 1, 30), np.linspace(0, 2, 30)))
    waves = np.exp(-(np.pi**2) * t) * np.sin(np.pi * x)
    pd.DataFrame({"t": t, "x1": x, "y1": waves}).to_csv(folder / "dae" / "heat.csv", index=False)
    pd.DataFrame({"x1": t, "x2": x, "y1": waves}).to_csv(folder / "dae" / "pde_greenberg.csv", index=False)
    (folder / "fitzhugh_nagumo").mkdir()
    t = np.linspace(0, 20, 41)
    z = solution(fitzhugh_rates, (0, 20), (-1, 1), t, (0.2, 0.2, 3.0))
    truth = pd.DataFrame({"time": t, "V": z[:, 0], "R": z[:, 1]})
    truth.to_csv(folder / "fitzhugh_nagumo" / "fn_truth.csv", index=False)
    pd.concat([truth.assign(replicate=k) for k in range(3)]).to_csv(folder / "fitzhugh_nagumo" / "fn_replicates.csv")
    t = np.array([0.0, 1, 2, 4, 5, 7, 10, 15, 20, 30, 40, 50, 60, 80, 100])
    z = solution(protein_rates, (0, np.log(101)), (1, 0, 1, 0, 0), np.log1p(t), tuple(PROTEIN_CONSTANTS.values()))
    truth = pd.DataFrame(z, columns=list(PROTEIN_STATES)).assign(time=t)
    truth.to_csv(folder / "fitzhugh_nagumo" / "ptrans_truth.csv", index=False)
    for level in ("low", "high"):
        truth.assign(replicate=1).to_csv(folder / "fitzhugh_nagumo" / f"ptrans_replicates_{level}.csv", index=False)


def write_fields(folder, generator):
    for name in ("helmholtz", "drifters", "magnetometer", "compositions"):
        (folder / name).mkdir()
    x = generator.uniform(-1, 1, (30, 2))
    flow = pd.DataFrame({"x": x[:, 0], "y": x[:, 1], "u": -x[:, 1], "v": x[:, 0]})
    for name in ("vortex", "divweak", "divmild", "divstrong"):
        for kind in ("train", "test"):
            flow.to_csv(folder / "helmholtz" / f"{name}_{kind}.csv", index=False)
    for kind in ("train", "test"):
        flow.rename(columns={"x": "lon", "y": "lat"}).to_csv(folder / "drifters" / f"gulf_{kind}.csv", index=False)
    pd.DataFrame(generator.standard_normal((200, 6))).to_csv(folder / "magnetometer" / "magnetometer.csv", index=False)
    metals = pd.DataFrame(generator.uniform(1, 9, (40, 7)), columns=["Cd", "Cu", "Pb", "Co", "Cr", "Ni", "Zn"])
    metals = metals.assign(X=generator.random(40), Y=generator.random(40), validation=np.arange(40) % 4 == 0)
    metals.astype({"validation": int}).to_csv(folder / "compositions" / "jura.csv", index=False)
    parts = generator.dirichlet([2, 2, 2], 800) * 100
    soil = pd.DataFrame(parts, columns=["sand", "silt", "clay"]).assign(Xcoord=generator.random(800), Ycoord=0.0)
    soil.to_csv(folder / "compositions" / "gemas_texture.csv", index=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("public")
    generator = np.random.default_rng(0)
    write_simulators(folder, generator)
    write_equations(folder)
    write_fields(folder, generator)
    return folder


@pytest.mark.parametrize("name", SETS)
def test_every_set_gives_cases_that_can_be_bound(folder, name):
    (entry,) = sets_named([name])
    assert isinstance(entry, PublicSet)
    assert entry.is_there(folder)
    cases = list(entry.load(folder))
    assert cases
    for case in cases:
        assert case.x.shape == (len(case.y), len(case.inputs) + len(case.extra))
        assert not np.isnan(case.y).all(axis=1).any()
        for part in case.parts:
            assert part.y.shape == (len(part.x), len(case.outputs))
    for case in {(*case.laws, *case.own_laws, *case.bounds): case for case in cases}.values():
        law = FormulaConstraint([*case.laws, *case.own_laws, *case.bounds], case.constants).bind(case.outputs, case.inputs)
        assert law.n_rows


def test_noise_and_gaps_are_as_said(folder):
    cases = list(sets_named(["pooling"])[0].load(folder))
    assert [case.label for case in cases] == 5 * ["noise 0%", "noise 1%", "noise 3%", "noise 10%"]
    assert not np.isin(cases[4].x, cases[0].x).all()
    assert not np.isnan(cases[0].y).any()
    for case in cases[1:4]:
        assert 0.2 < np.isnan(case.y).mean() < 0.4
    law = FormulaConstraint(list(cases[0].laws)).bind(cases[0].outputs, cases[0].inputs)
    assert np.max(np.abs(law.residual(cases[0].y, cases[0].x))) < 1e-12


def test_stored_solutions_obey_the_laws_of_their_sets(folder):
    """Derivatives of the noiseless curves by differences, put into the formulas."""
    for name in ("lotka_volterra", "catalysis", "ode_system"):
        case = next(iter(sets_named([name])[0].load(folder)))
        frame = pd.read_csv(folder / "dae" / f"{name}.csv")
        t, f = frame[["x1"]].to_numpy(), frame[list(case.outputs)].to_numpy()
        law = FormulaConstraint(list(case.own_laws)).bind(case.outputs, case.inputs)
        columns = [f]
        for derivative in law.derivatives:
            slope = f[:, derivative.output]
            for _ in range(derivative.order):
                slope = np.gradient(slope, t[:, 0], edge_order=2)
            columns.append(slope[:, None])
        values = np.column_stack(columns)
        inner = slice(5, -5)
        miss = np.abs(law.residual(values, t)[inner])
        assert np.max(miss / (1e-12 + law.magnitude(values, t)[inner].max(axis=0))) < 5e-3


def test_least_squares_on_a_solved_equation():
    """Two unknown constants of n' = r n (1 - n / K): errors within their stated covariance, which is that of refits."""
    system = System(lambda t, z, c: c[0] * z * (1 - z / c[1]), (1.3, 2.0), (0.2,), (0,), estimated=True)
    t = np.linspace(0.0, 5.0, 20)
    truth = system.curve(system.truth, t)
    found = []
    for seed in range(12):
        y = truth + 0.05 * np.random.default_rng(seed).standard_normal(truth.shape)
        y[3] = np.nan
        found.append(least_squares_fit(system, t, y, 0.0))
    parameters = np.array([fit.parameters for fit in found])
    stated = np.sqrt(np.mean([np.diag(fit.covariance) for fit in found], axis=0))
    assert np.all(np.abs(parameters.mean(axis=0) - system.truth) < 3 * stated / np.sqrt(12))
    assert np.all((parameters.std(axis=0) > 0.5 * stated) & (parameters.std(axis=0) < 2 * stated))
    assert 0.03 < np.sqrt(np.mean([fit.noise for fit in found])) < 0.07
    mean, variance = found[0].curve(t)
    assert np.mean(np.abs(mean - truth) < 3 * np.sqrt(variance)) > 0.9


def test_our_fit_and_its_rivals_on_an_equation(folder):
    case = list(sets_named(["catalysis"])[0].load(folder))[1]
    rmse = {}
    for name in ("law", "spline", "least squares on the solved equation"):
        assert COMPETITORS[name].suits(case)
        (part,) = scored(case, COMPETITORS[name].fit)
        rmse[name] = part["mse"] ** 0.5
    assert rmse["law"] < 0.5 * rmse["spline"]
    assert rmse["law"] < 2.0 * rmse["least squares on the solved equation"] + 1e-3


def test_quick_runs_are_thinned_and_rounds_go_through_all_sets(folder):
    sets = sets_named(["pooling", "catalysis"])
    tasks = list(plan(sets, folder, quick=False))
    assert [t.number for t in tasks] == sorted(t.number for t in tasks)
    quick = list(plan(sets, folder, quick=True))
    assert {t.case.set_name for t in quick} == {"pooling", "catalysis"}
    assert max(t.case.y.size for t in quick) <= 160
    case = tasks[0].case
    few = thinned(case, 50)
    assert len(few.x) == 10
    np.testing.assert_array_equal(few.x[[0, -1]], case.x[[0, -1]])


def test_page_compares_only_cases_that_all_methods_saw(folder, tmp_path):
    sets = sets_named(["catalysis"])
    tasks = [t for t in plan(sets, folder, quick=False) if t.method in ("law", "scikit-learn RBF") and t.number < 3]
    records = [record for task in tasks for record in run_public_task(task)]
    table = scores_table(records[:-1])  # the last case is without its second method
    assert set(table["part"]) == {"noise 1%", "noise 3%", "noise 10%"}
    assert list(table[table["part"] == "noise 10%"]["method"]) == ["law"]
    summary = ratios(table)
    assert list(summary["part"]) == ["noise 1%", "noise 3%"]
    assert np.all(summary["ratio"] < 1.0)
    text = write_page(records, sets, {}, tmp_path).read_text()
    assert "| noise 1% | **law** |" in text
    assert "3 parts of 1 sets" in text
    assert "warned" not in text
    alike = [replace(r, warnings=[f"row {k}, output 'a' is {k}.5", "no law"][: k + 1]) for k, r in enumerate(records)]
    text = write_page(alike, sets, {}, tmp_path).read_text()
    assert text.count("warned") == 2
    assert "Our fits warned in 3 of 3 data sets, for example: row 0, output 'a' is 0.5." in text
    assert "Our fits warned in 2 of 3 data sets, for example: no law." in text


def test_a_total_before_its_parts_is_a_hierarchy(tmp_path):
    (tmp_path / "hierarchies").mkdir()
    table = pd.DataFrame({"year": 2000, "month": [1, 2], "all": [3.0, 5.0], "n": [1.0, 2.0], "s": [2.0, 3.0]})
    table.to_csv(tmp_path / "hierarchies" / "swiss_tourism.csv", index=False)
    found = read_hierarchy(tmp_path, "swiss_tourism")
    np.testing.assert_array_equal(found.summing.to_numpy() @ found.values[:, 1:].T, found.values.T)


def test_values_that_a_law_determines_count_as_covered():
    x = np.linspace(0, 1, 12)[:, None]
    y = np.column_stack([np.sin(3 * x[:, 0]), 0.5 + 0 * x[:, 0]])
    case = Case("s", "0", x, y, ("x",), ("a", "b"), (), (Part("p", x, y),), sizes=np.ones(2))
    away = np.array([1e-3, 1e-9])  # the first is missed, the second round-off
    (found,) = scored(case, lambda case: lambda x, y: Prediction(y + away, y + away, y + away, 0 * y))
    assert found["coverage"] == 0.5


def test_the_heat_equation_helps_our_fit_most(folder):
    case = next(iter(sets_named(["heat"])[0].load(folder)))
    assert case.x[:, 0].max() < 0.7
    ours = scored(case, COMPETITORS["law"].fit)[0]["mse"]
    assert ours < 0.25 * scored(case, COMPETITORS["no law"].fit)[0]["mse"]


def test_a_solved_equation_meets_its_laws(folder):
    """Slopes by differences of the solution, and the laws as they are given to the fit."""
    case = next(iter(sets_named(["protein_transduction"])[0].load(folder)))
    s, h = np.linspace(0.5, 4.0, 9), 1e-4
    constants = tuple(PROTEIN_CONSTANTS.values())
    z, above, below = (solution(protein_rates, (0, 4.1), (1, 0, 1, 0, 0), s + d, constants) for d in (0.0, h, -h))
    law = FormulaConstraint(list(case.own_laws), PROTEIN_CONSTANTS).bind(case.outputs, case.inputs)
    slopes = [(above - below)[:, d.output] / (2 * h) for d in law.derivatives]
    np.testing.assert_allclose(law.residual(np.column_stack([z, *slopes]), s[:, None]), 0.0, atol=1e-6)


def test_our_fit_is_told_that_the_equation_holds_where_it_is_scored(folder):
    case = next(iter(sets_named(["ode_system"])[0].load(folder)))
    x, y = with_ends(case)
    assert x[-2:, 0].tolist() == [min(case.x.min(), case.parts[0].x.min()), max(case.x.max(), case.parts[0].x.max())]
    assert np.isnan(y[-2:]).all()
    np.testing.assert_array_equal(y[:-2], case.y)
