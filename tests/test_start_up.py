"""``import sumgp`` asks for nothing that a first fit does not need: a cold process is answered within seconds."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

LATER = {"pandas", "sympy", "matplotlib", "rich", "typer", "jinja2", "dask", "distributed", "pooch", "torch"}
FIRST_FIT = """
import numpy as np, sumgp
x = np.linspace(0, 1, 6)
gp = sumgp.ConstrainedGP("a + b = 1", outputs=["a", "b"], uncertainty="plug-in").fit(x, np.stack([x, 1 - x], 1))
gp.predict(x)
"""


def modules_after(program: str) -> dict[str, str]:
    """Name -> file of every module that a fresh process has loaded after a program."""
    listing = "\nimport sys\nfor name, module in list(sys.modules.items()):"
    listing += "\n    print(name, getattr(module, '__file__', None), sep=chr(9))"
    done = subprocess.run([sys.executable, "-c", program + listing], capture_output=True, text=True, check=True)
    return dict(line.split("\t") for line in done.stdout.splitlines())


def asked_at_once(text: str) -> Iterator[str]:
    """Packages that a module's text imports when it is loaded: not inside functions, not for type checkers only."""
    waiting: list[ast.AST] = [ast.parse(text)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting.extend(node.orelse)
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            waiting.extend(ast.iter_child_nodes(node))


@pytest.mark.parametrize("program", ["import sumgp", FIRST_FIT], ids=["import", "first fit"])
def test_nothing_is_loaded_that_scikit_learn_does_not_load(program: str) -> None:
    """scikit-learn loads some of these itself where they are installed; what we ask for is seen in our own files too."""
    theirs = modules_after("import sklearn.gaussian_process")
    ours = modules_after(program)
    assert {name.partition(".")[0] for name in ours.keys() - theirs.keys()} & LATER == set()
    files = {name: file for name, file in ours.items() if name.partition(".")[0] == "sumgp"}
    assert len(files) > 50
    asked = {name: set(asked_at_once(Path(file).read_text(encoding="utf-8"))) & LATER for name, file in files.items()}
    assert {name: packages for name, packages in asked.items() if packages} == {}


def test_the_command_that_fits_needs_no_plotting_library_and_no_algebra() -> None:
    loaded = {name.partition(".")[0] for name in modules_after("import sumgp.cli.app, sumgp.cli.fit")}
    assert "typer" in loaded
    assert loaded & {"matplotlib", "sympy", "dask", "distributed"} == set()


def test_the_search_tells_imports_at_load_from_later_ones() -> None:
    text = "import a.b\nif TYPE_CHECKING:\n    import c\nelse:\n    import d\n"
    text += "try:\n    from e.f import g\nexcept ImportError:\n    import h\n"
    text += "def later():\n    import i\nclass K:\n    import j\n"
    assert set(asked_at_once(text)) == {"a", "d", "e", "h", "j"}
