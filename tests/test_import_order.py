"""The import-order check passes on the package and fails on trees made to break it."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import check_imports

TOOL = Path(check_imports.__file__)
Run = Callable[[Path], tuple[int, str]]


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A small package in good order; tests add one offending file."""
    folder = tmp_path / "sumgp"
    (folder / "laws").mkdir(parents=True)
    (folder / "__init__.py").write_text("from sumgp.estimator import ConstrainedGP\n")
    (folder / "errors.py").write_text("import numpy\n")
    (folder / "numerics.py").write_text("from sumgp import errors\nfrom sumgp.errors import DataError\n")
    (folder / "laws" / "__init__.py").write_text("from .linear import LinearConstraint\n")
    (folder / "laws" / "linear.py").write_text("import sumgp.numerics as numerics\nfrom ..errors import DataError\n")
    (folder / "laws" / "sums.py").write_text("from sumgp.laws.linear import LinearConstraint\n")
    (folder / "estimator.py").write_text("from sumgp.laws import LinearConstraint\n")
    return folder


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Exit status and printed text of the command on a folder."""
    return lambda folder: (check_imports.main([str(folder)]), capsys.readouterr().out)


def test_the_package_is_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ast, "parse", functools.cache(ast.parse))  # three checks of the same files
    folder = TOOL.parent.parent / "src" / "sumgp"
    assert [str(o) for o in check_imports.offences(folder)] == []
    assert check_imports.unplaced(folder) == []
    assert [str(o) for o in check_imports.back_doors(folder)] == []
    assert [str(o) for o in check_imports.studies_imported(folder)] == []


def test_a_tree_in_order_passes(package: Path, run: Run) -> None:
    assert run(package) == (0, "")


@pytest.mark.parametrize(
    ("source", "line", "imported"),
    [
        ("from sumgp.estimator import ConstrainedGP\n", 1, "sumgp.estimator"),
        ("import numpy\nimport sumgp.estimator\n", 2, "sumgp.estimator"),
        ("import sumgp.estimator as e\n", 1, "sumgp.estimator"),
        ("from ..estimator import ConstrainedGP\n", 1, "sumgp.estimator"),
        ("from .. import estimator\n", 1, "sumgp.estimator"),
        ("from sumgp import estimator\n", 1, "sumgp.estimator"),
        ("def late():\n    from sumgp.estimator import ConstrainedGP\n", 2, "sumgp.estimator"),
        ("from sumgp import ConstrainedGP\n", 1, "sumgp"),
        ("import sumgp\n", 1, "sumgp"),
        ("from sumgp.unheard_of import thing\n", 1, "sumgp.unheard_of"),
    ],
)
def test_an_import_down_the_list_fails(package: Path, source: str, line: int, imported: str, run: Run) -> None:
    file = package / "laws" / "bad.py"
    file.write_text(source)
    assert run(package) == (1, f"{file}:{line} sumgp.laws imports {imported}\n")


@pytest.mark.parametrize(
    "source", ["from sumgp.laws.linear import LinearConstraint\n", "from .laws.linear import LinearConstraint\n"]
)
def test_a_module_behind_the_front_of_another_part_fails(package: Path, source: str, run: Run) -> None:
    (package / "estimator.py").write_text(source)
    assert run(package) == (1, f"{package / 'estimator.py'}:1 sumgp.estimator imports sumgp.laws.linear\n")


@pytest.mark.parametrize("source", ["import sumgp_studies.speed\n", "def late():\n    from sumgp_studies import gram\n"])
def test_the_library_never_imports_the_studies(package: Path, source: str, run: Run) -> None:
    (package / "estimator.py").write_text(source)
    status, printed = run(package)
    assert status == 1
    assert printed.endswith("sumgp.estimator imports sumgp_studies\n")


def test_a_part_without_a_place_fails(package: Path, run: Run) -> None:
    (package / "extras.py").write_text("import numpy\n")
    status, printed = run(package)
    assert status == 1
    assert "extras.py: has no place" in printed


def test_a_folder_that_is_no_package_is_refused(tmp_path: Path) -> None:
    """By the command as it is typed."""
    result = subprocess.run([sys.executable, str(TOOL), str(tmp_path)], capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert "no __init__.py" in result.stdout


def test_other_packages_of_similar_name_do_not_count(package: Path) -> None:
    (package / "errors.py").write_text("import sumgp_extras.cli\nfrom sumgpx import cli\n")
    assert check_imports.offences(package) == []
