"""Rules on the text of the project itself: nothing that runs code from data, no machine's paths, small pieces."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted((ROOT / "src" / "sumgp").rglob("*.py"))

FORBIDDEN_MODULES = {"pickle", "cPickle", "_pickle", "cloudpickle", "dill", "marshal", "shelve"}
FORBIDDEN_CALLS = {"eval", "exec", "sympify", "parse_expr", "__import__"}
FORBIDDEN_NAMES = {"NotImplementedError", "sympify", "parse_expr"}
# Calls that are pickle under another name.
FORBIDDEN_ATTRIBUTES = {("joblib", "load"), ("joblib", "dump"), ("pd", "read_pickle"), ("pandas", "read_pickle")}

LONGEST_FILE = 350
LONGEST_FUNCTION = 50

# A slash and one of these at the start of a path; "energy/work" in prose is none.
MACHINE_PATH = re.compile(r"(?<![\w.~*-])/(?:root|home|work|Users)(?![\w-])")
PIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9.!]+")


def forbidden(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, name) of everything that could run code from data, or that promises without delivering."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = {alias.name.split(".")[0] for alias in node.names} & FORBIDDEN_MODULES
        elif isinstance(node, ast.ImportFrom):
            names = {(node.module or "").split(".")[0]} & FORBIDDEN_MODULES
            names |= {alias.name for alias in node.names} & (FORBIDDEN_NAMES | FORBIDDEN_MODULES)
        elif isinstance(node, ast.Call):
            names = forbidden_call(node)
        elif isinstance(node, ast.Name):
            names = {node.id} & FORBIDDEN_NAMES
        else:
            names = set()
        yield from ((node.lineno, name) for name in sorted(names))  # type: ignore[attr-defined]


def forbidden_call(node: ast.Call) -> set[str]:
    called = node.func
    names: set[str] = set()
    if isinstance(called, ast.Name):
        names = {called.id} & FORBIDDEN_CALLS
    elif isinstance(called, ast.Attribute):
        names = {called.attr} & FORBIDDEN_CALLS
        if isinstance(called.value, ast.Name) and (called.value.id, called.attr) in FORBIDDEN_ATTRIBUTES:
            names = {f"{called.value.id}.{called.attr}"}
    for keyword in node.keywords:
        if keyword.arg == "allow_pickle" and not (isinstance(keyword.value, ast.Constant) and keyword.value.value is False):
            names = names | {"allow_pickle"}
    return names


def long_functions(tree: ast.AST) -> list[tuple[str, int]]:
    """(name, lines) of functions over the limit, signature and docstring counted."""
    sizes = [
        (node.name, (node.end_lineno or node.lineno) - node.lineno + 1)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return [(name, size) for name, size in sizes if size > LONGEST_FUNCTION]


def project_files() -> list[Path]:
    """Files under version control or about to be; without git, every file outside hidden and generated folders."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    except (OSError, subprocess.CalledProcessError):
        skipped = {".venv", ".git", "site", "build", "dist", "demo-output", "bench-output", "soak-output", "__pycache__"}
        listed = [
            str(path.relative_to(ROOT))
            for path in ROOT.rglob("*")
            if not any(part in skipped or part.endswith((".egg-info", "_cache")) for part in path.relative_to(ROOT).parts)
        ]
    return sorted(ROOT / name for name in listed if name and (ROOT / name).is_file())


def machine_paths(text: str) -> list[int]:
    """Numbers of the lines that name a folder of some particular machine."""
    return [number for number, line in enumerate(text.splitlines(), 1) if MACHINE_PATH.search(line)]


def text_of(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""


def test_there_is_something_to_check() -> None:
    assert len(SOURCES) >= 5
    assert ROOT / "pyproject.toml" in project_files()


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: str(file.relative_to(ROOT)))
def test_source_file(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    tree = ast.parse(text)
    assert list(forbidden(tree)) == []
    assert long_functions(tree) == []
    assert len(text.splitlines()) <= LONGEST_FILE


def test_no_machine_paths() -> None:
    found = {str(file.relative_to(ROOT)): lines for file in project_files() if (lines := machine_paths(text_of(file)))}
    assert found == {}


def pins_of(file: str) -> dict[str, str]:
    """Version of each package in a file of constraints, which holds nothing but exact versions."""
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert [line for line in pins if not PIN.fullmatch(line)] == []
    found = {name_of(line): line.split("==")[1] for line in pins}
    assert len(found) == len(pins)
    return found


def name_of(requirement: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"[\[=><]", requirement)[0]).lower()


def test_constraints_are_plain_pins() -> None:
    assert pins_of("constraints.txt")["numpy"]


def test_the_oldest_versions_are_those_that_are_allowed() -> None:
    """What ``make test-oldest`` runs with: the lower bound of everything that the library or an option of it needs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    options = project["optional-dependencies"]
    needed = [*project["dependencies"], *(r for o in ("excel", "parquet", "xarray", "dask", "app") for r in options[o])]
    allowed = {name_of(requirement): requirement.split(">=")[1] for requirement in needed}
    oldest = pins_of("constraints-oldest.txt")
    assert oldest.pop("distributed") == oldest["dask"]  # they come together
    assert oldest.keys() == allowed.keys()
    assert {name: version for name, version in oldest.items() if not version.startswith(allowed[name])} == {}


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "import os, dill.settings",
        "from pickle import loads",
        "from joblib.externals import cloudpickle",
        "from sympy import sympify as s",
        "from sympy.parsing.sympy_parser import parse_expr",
        "eval('1')",
        "exec(text)",
        "frame.eval('a + b')",
        "sympy.sympify(text)",
        "sympy.parsing.sympy_parser.parse_expr(text)",
        "raise NotImplementedError",
        "raise NotImplementedError('later')",
        "joblib.load(path)",
        "np.load(path, allow_pickle=True)",
    ],
)
def test_forbidden_code_is_seen(source: str) -> None:
    assert list(forbidden(ast.parse(source))) != []


@pytest.mark.parametrize(
    "source",
    [
        "evaluate(x)",
        "np.load(path, allow_pickle=False)",
        "'eval(1)'",
        "re.compile('a')",
        "joblib.Parallel(2)",
        "import sympy",
    ],
)
def test_harmless_code_is_not(source: str) -> None:
    assert list(forbidden(ast.parse(source))) == []


def test_long_functions_are_seen() -> None:
    def body(lines: int) -> str:
        return "def f():\n" + "    x = 1\n" * (lines - 1)

    assert long_functions(ast.parse(body(LONGEST_FUNCTION))) == []
    assert long_functions(ast.parse(body(LONGEST_FUNCTION + 1))) == [("f", LONGEST_FUNCTION + 1)]


@pytest.mark.parametrize("folder", ["root", "home", "work"])
def test_machine_paths_are_seen(folder: str) -> None:
    assert machine_paths(f"fine\npath = '/{folder}/data'\n") == [2]
    assert machine_paths(f"see /{folder}") == [1]
    assert machine_paths(f"energy/{folder} and ./{folder}/x and /{folder}shop") == []


def test_version_is_the_newest_dated_section_of_the_changelog() -> None:
    """One number for package, citation and changelog; what comes later stands under "unreleased"."""
    from sumgp.version import VERSION

    released = re.findall(r"^## (\d+\.\d+\.\d+) \(\d{4}-\d\d-\d\d\)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert released[0] == VERSION
    assert f"\nversion: {VERSION}\n" in (ROOT / "CITATION.cff").read_text()
