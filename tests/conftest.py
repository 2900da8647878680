"""Settings every test runs under: repeatable property tests, figures without a screen."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import numpy as np
import pytest

# Through the environment, so that programs started by a test draw without a screen as well.
os.environ["MPLBACKEND"] = "Agg"

hypothesis.settings.register_profile("repeatable", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("repeatable")

# Whole fits that are judged by their numbers, and long runs of studies and tools: `make test-long` runs them, `make test`
# does not. Other tests, of the parts, run their lines too.
LONG = tuple(
    f"tests/{place}"
    for place in (
        *("calibration/", "properties/", "equivalence/test_never_worse", "laws/test_formula_fuzz"),
        *("conformance/test_engines.py::test_promised", "conformance/test_strategies.py::test_promised"),
        *("paper_method/test_engines_mcmc", "app/test_path.py::test_two_inputs_are_maps"),
        *("cli/test_bench_maps.py::test_beside_dense_algebra", "cli/test_bench_maps.py::test_the_command_lists"),
        "faults/test_mutation_list.py::test_caught_and_not_caught",
        "hyperparameters/test_draws.py::test_weights_sum_to_the_evidence",
        "strategies/test_short_enough.py::test_a_pendulum_with_its_energy",
        "studies/test_figures.py::test_every_experiment_has_its_figures",
        "studies/test_runner.py::test_dask_cluster_that_loses_a_worker",
        *("studies/test_reproduce_command.py::test_quick_run", "studies/test_public.py::test_run_writes_page_and_resumes"),
        *("test_many.py::test_a_process_that_dies", "test_start_up.py::test_a_cold_fit", "test_never_worse_tool"),
        "strategies/test_collocated_fields.py::test_a_field_that_varies_too_fast",
        "strategies/test_collocated_fields.py::test_a_law_shows_waves",
        "strategies/test_collocated_fields.py::test_data_that_are_all_noise",
        "strategies/test_collocated_fields.py::test_the_heat_equation_halves_the_error",
        "strategies/test_collocated_fields.py::test_two_outputs_one_hardly_measured",
        "strategies/test_markov_fits.py::test_long_series_choose",
        "strategies/test_markov_fits.py::test_repeated_and_unordered_times",
        "strategies/test_markov_fits.py::test_samples_lie_on_the_law",
        "strategies/test_markov_fits.py::test_the_same_hyperparameters_are_found",
        *("strategies/test_eliminated_fields", "strategies/test_markov_motion"),
        "strategies/test_vecchia_fits.py::test_exact_data_with_near_duplicates",
        "strategies/test_vecchia_fits.py::test_order_of_rows_and_outputs",
        "strategies/test_vecchia_fits.py::test_outputs_in_other_units",
        *("trust/test_dependent_maps", "trust/test_families", "trust/test_flat_curves", "trust/test_many_periods"),
        *("trust/test_output_order", "trust/test_pickled_models", "trust/test_rougher_curves", "trust/test_rows_left_out"),
        *("trust/test_arguments.py::test_bands_are_as_wide", "trust/test_several_laws", "trust/test_single_points"),
        "test_random_problems.py::test_random_problems_end_well",
    )
)
# Measuring the lines that a test runs makes it half as long again. It is left out for tests that start processes, for those
# of tools, studies and texts, and for long ones whose lines others run too: a line is the beginning of their names.
UNMEASURED = tuple(Path(__file__).with_name("unmeasured.txt").read_text(encoding="utf-8").split())
# What takes long to load and is not ours; nobody asks which of its lines run.
LIBRARIES = ("scipy.stats", "sklearn.gaussian_process", "pandas", "sympy", "matplotlib.figure", "typer", "jinja2", "dask")

# New objects between two searches for unreachable ones, as in the command line: with 700, as by default, reading the tests
# takes a third longer.
gc.set_threshold(100_000)

MOST_PROCESSES = 4  # a container may see more cores than it may use; each process takes 400 MB


def pytest_xdist_auto_num_workers() -> int:
    """One process a core: each reads all tests first, which takes ten seconds and twice that where coverage is measured."""
    return min(os.cpu_count() or 1, MOST_PROCESSES)


@pytest.fixture
def rng() -> np.random.Generator:
    """A fresh generator with a fixed seed: the same numbers whatever ran before."""
    return np.random.default_rng(0)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share a fixture of their module run in one process, so that it is computed once."""
    for item in items:
        if item.nodeid.startswith(LONG):
            item.add_marker("long")
        if item.nodeid.startswith(UNMEASURED):
            item.add_marker("unmeasured")
        found = item._fixtureinfo.name2fixturedefs.values() if isinstance(item, pytest.Function) else ()
        if any(fixture.scope == "module" for *_, fixture in found):
            item.add_marker(pytest.mark.xdist_group(item.nodeid.split("::")[0]))


def pytest_collection_finish() -> None:
    """What was read stays until the end: no later search goes through it again."""
    gc.freeze()


@contextlib.contextmanager
def unmeasured(config: pytest.Config) -> Iterator[None]:
    """Meanwhile coverage is not measured, if it is at all."""
    plugin = config.pluginmanager.getplugin("_cov")
    if plugin is None:
        yield
        return
    plugin.cov_controller.pause()
    try:
        yield
    finally:
        plugin.cov_controller.resume()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Of reading the tests, coverage measures what loading the package runs: all else would take twice the time."""
    if session.config.pluginmanager.hasplugin("_cov") and not session.config.pluginmanager.hasplugin("dsession"):
        with unmeasured(session.config):
            for name in LIBRARIES:
                importlib.import_module(name)
        for module in pkgutil.walk_packages(importlib.import_module("sumgp").__path__, "sumgp."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    with unmeasured(session.config):
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Coverage is not measured in an unmeasured test, nor in the fixtures that are made for it."""
    if item.get_closest_marker("unmeasured") is None:
        return (yield)
    with unmeasured(item.config):
        return (yield)
