"""The command: options, defaults, messages, and a whole run with stand-in methods."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import typer
from studies.stand_in import Waves
from typer.testing import CliRunner

from sumgp.errors import SumGPError
from sumgp_studies.commands import reproduce as command
from sumgp_studies.experiments import all_problems
from sumgp_studies.experiments import methods as method_module
from sumgp_studies.experiments.records import RecordFile
from sumgp_studies.experiments.runner import records_path

REAL_METHODS = method_module.all_methods()


@dataclass(frozen=True)
class SuitedWaves(Waves):
    """Waves that suit the experiments that the method of their name suits."""

    def suits(self, experiment: str) -> bool:
        return REAL_METHODS[self.name].suits(experiment)


@pytest.fixture
def call(monkeypatch, tmp_path):
    """Call the command with stand-ins in place of every method."""
    stand_ins = {name: SuitedWaves(name) for name in REAL_METHODS}
    monkeypatch.setattr(method_module, "all_methods", lambda: stand_ins)
    monkeypatch.setattr(command, "all_methods", lambda: stand_ins)
    monkeypatch.delenv("SUMGP_DATA_DIR", raising=False)
    app = typer.Typer()
    app.command()(command.reproduce)

    def run(*arguments: str):
        return CliRunner().invoke(app, [*arguments, "--out", str(tmp_path), "--jobs", "1"])

    return run


def records(tmp_path):
    return RecordFile(records_path(tmp_path)).read()


def test_quick_run_of_everything(call, tmp_path):
    result = call("all", "--quick", "--no-figures")
    assert result.exit_code == 0, result.output
    found = records(tmp_path)
    per_experiment = {
        name: len(problem.cells) * len(problem.default_methods) * 2 for name, problem in all_problems().items()
    }
    assert {name: sum(r.experiment == name for r in found) for name in per_experiment} == per_experiment
    assert {record.uncertainty for record in found} == {"plug-in"}
    assert {record.dataset for record in found} == {0, 1}
    assert "SIMULATED" in result.output
    assert "geometric mean ratio" in result.output
    assert (tmp_path / "report.html").exists()


def test_second_call_continues(call, tmp_path):
    call("triangle", "--datasets", "1", "--no-figures")
    before = records_path(tmp_path).read_bytes()
    result = call("triangle", "--datasets", "2", "--no-figures")
    assert "30 fits in all, 15 done before" in result.output
    assert records_path(tmp_path).read_bytes().startswith(before)
    assert len(records(tmp_path)) == 30


def test_projected_is_always_among_the_methods(call, tmp_path):
    call("harmonic_oscillator", "--method", "linearized", "--datasets", "1", "--first-seed", "1000", "--no-figures")
    found = records(tmp_path)
    assert {record.method for record in found} == {"linearized", "projected"}
    assert {record.dataset for record in found} == {1000}
    assert {record.uncertainty for record in found} == {"integrated"}


def test_plug_in_option(call, tmp_path):
    call("triangle", "--method", "linearized", "--datasets", "1", "--plug-in", "--no-figures")
    assert {record.uncertainty for record in records(tmp_path)} == {"plug-in"}


def test_misspelt_names_get_a_suggestion(call):
    wrong = call("harmonic_osillator")
    assert wrong.exit_code == 2
    assert "did you mean 'harmonic_oscillator'?" in " ".join(wrong.output.split())
    assert "did you mean 'linearized'?" in " ".join(call("triangle", "--method", "linearised").output.split())


def test_method_that_suits_no_experiment_is_an_error():
    with pytest.raises(SumGPError, match="suits harmonic_oscillator"):
        command.planned([all_problems()["harmonic_oscillator"]], ["gram"], [0], "integrated")


def test_missing_data_folder_is_an_error(call, tmp_path):
    result = call("double_pendulum", "--data-dir", str(tmp_path / "nowhere"))
    assert result.exit_code == 2
    assert "data_dir: expected the files" in " ".join(result.output.split())


def test_experiments_keep_the_order_of_the_paper():
    names = [problem.name for problem in command.chosen_problems(["log_sine", "triangle"], all_problems())]
    assert names == ["triangle", "log_sine"]
