"""A loaded model predicts bit for bit as the saved one, whatever law, strategy and kernel it has."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel, Matern, RationalQuadratic

import sumgp
from sumgp.files import archive as files
from sumgp.files import model_bytes
from sumgp.files.nodes import read_kernel, write_kernel
from sumgp.paper_method import Transformed
from sumgp.paper_method.engines import Variational
from sumgp.priors import Growth
from sumgp.solvers import Markov
from sumgp.transforms import Square

NEW = np.linspace(-1.0, 7.0, 33)
ENERGY = "k/2*z**2 + m/2*v**2 = E"
CONSTANTS = {"k": 1.0, "m": 1.0, "E": 0.8}


def oscillator(rows: int = 12) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    t = np.linspace(0.0, 6.0, rows)
    Y = np.sqrt(1.6) * np.column_stack([np.sin(t), np.cos(t)]) + 0.05 * rng.standard_normal((rows, 2))
    Y[2, 0] = Y[7, 1] = np.nan
    return t, Y


def made(constraint: Any = None, **settings: Any) -> sumgp.ConstrainedGP:
    return sumgp.ConstrainedGP(
        constraint,
        outputs=["z", "v"],
        inputs=["t"],
        **{"uncertainty": "plug-in", "restarts": 0, "kernel": RBF(), **settings},
    )


MODELS = {
    "no law": lambda: made(kernel=None),
    "no law, integrated": lambda: made(kernel=None, uncertainty="integrated"),
    "linear": lambda: made("z + v = 1"),
    "linear, total varies": lambda: made("z + v = sin(t)"),
    "linear, unknown total": lambda: made("z + v = c", constants={"c": "unknown"}),
    "matrix": lambda: made(sumgp.LinearConstraint([[1.0, 2.0]], 3.0)),
    "matrix, soft": lambda: made(sumgp.LinearConstraint([1.0, 1.0], 1.0, noise=0.1)),
    "matrix, unknown": lambda: made(sumgp.LinearConstraint([1.0, 1.0], sumgp.Unknown("c"))),
    "energy": lambda: made(ENERGY, constants=CONSTANTS),
    "energy, integrated": lambda: made(ENERGY, constants=CONSTANTS, kernel=None, uncertainty="integrated"),
    "energy, unknown": lambda: made(ENERGY, constants={**CONSTANTS, "E": "unknown"}),
    "energy, tapered": lambda: made(ENERGY, constants=CONSTANTS, strategy=sumgp.Linearized(taper=2.0)),
    "energy, projected": lambda: made(ENERGY, constants=CONSTANTS, strategy=sumgp.Projected()),
    "transformed": lambda: made(ENERGY, constants=CONSTANTS, strategy=Transformed()),
    "transformed, variational": lambda: made(ENERGY, constants=CONSTANTS, strategy=Transformed(inference=Variational())),
    "logarithm": lambda: made("log(z + 3) = 0.5*v + 1", strategy=sumgp.Linearized()),
    "time series": lambda: made(kernel=Matern(nu=1.5), solver=Markov()),
    "time series, linear": lambda: made("z + v = 1", kernel=Matern(nu=1.5), solver=Markov()),
    "time series, energy": lambda: made(ENERGY, constants=CONSTANTS, kernel=Matern(nu=2.5), solver=Markov()),
    "sum of terms": lambda: made(sumgp.SumConstraint([sumgp.Term("z", 0.5, Square()), sumgp.Term("v", 0.5, Square())], 0.8)),
    "two objects": lambda: made([sumgp.LinearConstraint([1.0, 1.0], 1.0), sumgp.LinearConstraint([1.0, -1.0], 0.2)]),
    "general joint": lambda: made("z + v = 1", strategy=sumgp.Conditioned(joint=True)),
    "kernels": lambda: made(kernel=[ConstantKernel(2.0) * RBF() + Matern(nu=1.5), RationalQuadratic()]),
    "shared noise, groups": lambda: made("z + v = 1", noise="shared", groups=[["z", "v"]]),
    "known noise": lambda: made("z + v = 1", noise=[0.05, 0.07]),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore::sumgp.SumGPWarning")
def test_loaded_model_predicts_bit_for_bit(name: str, tmp_path: Path) -> None:
    t, Y = oscillator()
    gp = MODELS[name]().fit(t, Y)
    gp.save(tmp_path / "model.sumgp")
    again = sumgp.load(tmp_path / "model.sumgp")
    ours, theirs = gp.posterior(NEW), again.posterior(NEW)
    for quantity in ("mean", "std"):
        assert np.array_equal(getattr(ours, quantity), getattr(theirs, quantity)), quantity
    assert np.array_equal(ours.interval(0.9), theirs.interval(0.9))
    assert np.array_equal(ours.covariance(), theirs.covariance())
    assert np.array_equal(ours.sample(3, random_state=4), theirs.sample(3, random_state=4))
    assert np.array_equal(ours.residual(), theirs.residual())
    assert ours.constants().equals(theirs.constants())
    assert np.array_equal(ours.observed().std, theirs.observed().std)
    assert str(again.fit_report_) == str(gp.fit_report_)


def test_saving_a_loaded_model_gives_the_same_bytes(tmp_path: Path) -> None:
    t, Y = oscillator()
    gp = MODELS["energy"]().fit(t, Y)
    first = model_bytes(gp)
    (tmp_path / "a.sumgp").write_bytes(first)
    assert model_bytes(sumgp.load(tmp_path / "a.sumgp")) == first


def test_law_with_a_column_of_the_data(tmp_path: Path) -> None:
    t, Y = oscillator()
    frame = pd.DataFrame({"t": t, "total": 1.0 + 0.1 * t})
    gp = sumgp.ConstrainedGP("z + v = s", outputs=["z", "v"], inputs=["t"], constants={"s": "total"}, uncertainty="plug-in")
    gp.fit(frame, Y).save(tmp_path / "m.sumgp")
    again = sumgp.load(tmp_path / "m.sumgp")
    new = pd.DataFrame({"t": NEW, "total": 2.0 + np.cos(NEW)})
    assert np.array_equal(gp.predict(new), again.predict(new))
    assert np.abs(again.predict(new).sum(axis=1) - new["total"]).max() < 1e-10


def circle(f: np.ndarray, x: np.ndarray) -> np.ndarray:
    return f[:, 0] ** 2 + f[:, 1] ** 2 - 1.6


def wider(f: np.ndarray, x: np.ndarray) -> np.ndarray:
    return f[:, 0] ** 2 + f[:, 1] ** 2 - 1.7


CODE = {
    "function": (lambda: sumgp.FunctionConstraint(circle), None),
    "total of x": (lambda: sumgp.LinearConstraint([1.0, 1.0], lambda x: 1.0 + 0.1 * x[:, 0]), None),
    "formula with a function": (lambda: "z + v = s", {"s": lambda x: 1.0 + 0.1 * x[:, 0]}),
    "where": (lambda: sumgp.LinearConstraint([1.0, 1.0], 1.0, where=lambda x: x[:, 0] < 3.0), None),
}


@pytest.mark.parametrize("name", CODE)
def test_law_as_code_is_handed_over_again(name: str, tmp_path: Path) -> None:
    t, Y = oscillator()
    constraint, constants = CODE[name]
    gp = made(constraint(), constants=constants).fit(t, Y)
    path = tmp_path / "code.sumgp"
    with pytest.warns(sumgp.SumGPWarning, match="give the law as a formula"):
        gp.save(path)
    with pytest.raises(sumgp.ConstraintError, match="constraint="):
        sumgp.load(path)
    again = sumgp.load(path, constraint=constraint(), constants=constants)
    assert np.array_equal(gp.predict(NEW), again.predict(NEW))


def test_another_law_is_refused(tmp_path: Path) -> None:
    t, Y = oscillator()
    gp = made(sumgp.FunctionConstraint(circle)).fit(t, Y)
    with pytest.warns(sumgp.SumGPWarning):
        gp.save(tmp_path / "m.sumgp")
    with pytest.raises(sumgp.ConstraintError, match="not the law that was fitted"):
        sumgp.load(tmp_path / "m.sumgp", constraint=sumgp.FunctionConstraint(wider))
    with pytest.raises(sumgp.ConstraintError):
        sumgp.load(tmp_path / "m.sumgp", constraint="z + v = c", constants={"c": "unknown"})


def test_a_law_too_many_is_refused(tmp_path: Path) -> None:
    t, Y = oscillator()
    made("z + v = 1").fit(t, Y).save(tmp_path / "law.sumgp")
    made().fit(t, Y).save(tmp_path / "none.sumgp")
    for name in ("law", "none"):
        with pytest.raises(sumgp.ConstraintError, match="without constraint="):
            sumgp.load(tmp_path / f"{name}.sumgp", constraint="z + v = 1")


class OwnKernel(RBF):
    """A kernel of the user's own."""


def test_what_cannot_be_stored_says_so(tmp_path: Path) -> None:
    t, Y = oscillator()
    with pytest.raises(NotFittedError, match="fit"):
        made().save(tmp_path / "m.sumgp")
    gp = made(kernel=OwnKernel()).fit(t, Y)
    with pytest.raises(sumgp.DataError, match="OwnKernel cannot be stored"):
        gp.save(tmp_path / "m.sumgp")
    assert list(tmp_path.iterdir()) == []


def test_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    t, Y = oscillator()
    gp = made().fit(t, Y)
    path = tmp_path / "model.sumgp"
    gp.save(path)
    before = path.read_bytes()

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        gp.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_is_made_for_results_and_not_for_a_single_file(tmp_path: Path) -> None:
    files.write_files(tmp_path / "a" / "b", {"x": b"1", "y": b"2"})
    assert {p.name: p.read_bytes() for p in (tmp_path / "a" / "b").iterdir()} == {"x": b"1", "y": b"2"}
    with pytest.raises(FileNotFoundError):
        files.write_file(tmp_path / "c" / "x", b"1")
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_file_holds_only_numbers_and_json(tmp_path: Path) -> None:
    t, Y = oscillator()
    MODELS["energy"]().fit(t, Y).save(tmp_path / "m.sumgp")
    with zipfile.ZipFile(tmp_path / "m.sumgp") as file:
        names = file.namelist()
        document = json.loads(file.read("model.json"))
        for name in names[1:]:
            with file.open(name) as stream:
                assert np.lib.format.read_array(stream, allow_pickle=False).dtype.kind in "fib"
    assert document["version"] == 1
    assert document["constraint"]["texts"] == [ENERGY]


@pytest.mark.parametrize(
    "kernel",
    [
        RBF(0.3),
        Matern(0.7, nu=2.5),
        ConstantKernel(2.0) * RBF([0.5, 2.0]) + RationalQuadratic(),
        RBF(1.5, "fixed") ** 2,
        Growth([0.5, 3.0]) * RBF(0.4),
    ],
    ids=str,
)
def test_kernels_come_back_as_they_were(kernel: Kernel) -> None:
    again = read_kernel(json.loads(json.dumps(write_kernel(kernel))))
    X = np.random.default_rng(0).standard_normal((5, 2))
    assert again == kernel
    assert np.array_equal(again(X), kernel(X))
    assert np.array_equal(again.theta, kernel.theta)
    assert np.array_equal(again.bounds, kernel.bounds)
