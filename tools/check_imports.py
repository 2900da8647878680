"""Check that imports inside the package point one way only, and go through the front of each part.

A part imports parts before it in ``ORDER``, by the names that their ``__init__.py`` gathers; the library never imports the
studies around it.

``python tools/check_imports.py [PACKAGE_FOLDER]`` prints ``file:line a imports b`` for every offender and exits with 1.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ORDER = (
    "version",
    "errors",
    "notebook",
    "numerics",
    "data",
    "transforms",
    "laws",
    "priors",
    "solvers",
    "lawsolve",
    "hyperparameters",
    "strategies",
    "paper_method",
    "prediction",
    "estimator",
    "reconciliation",
    "files",
    "datasets",
    "many",
    "report",
    "cli",
    "app",
)

# Parts without a front: their modules are loaded one by one, so that a command loads only what it needs.
OPEN = ("cli",)

# The package's own front page gathers the public names, so it may import everything and nothing may import it.
FRONT = ("__init__", "__main__")

# (importer, imported) pairs that go down the list on purpose: ConstrainedGP.save hands itself to the file writer.
HANDED_DOWN = (("estimator", "files"),)


@dataclass(frozen=True)
class Offence:
    """One import that goes down the list instead of up, or that has no place in it."""

    file: Path
    line: int
    importer: str
    imported: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.importer} imports {self.imported}"


def offences(package: Path, order: Sequence[str] = ORDER) -> list[Offence]:
    """Return every import in the folder ``package`` that breaks ``order``, sorted by file and line.

    A part is a module or subpackage directly below the package. A part may import from itself and from parts
    before it. A part that ``order`` does not name is an offence wherever it is imported or imports.
    """
    found = []
    for file in sorted(package.rglob("*.py")):
        importer = _part(file, package)
        if importer in FRONT:
            continue
        for line, imported in sorted(set(_imported_parts(file, package))):
            if not _allowed(importer, imported, order):
                found.append(Offence(file, line, f"{package.name}.{importer}", _dotted(package.name, imported)))
    return found


def back_doors(package: Path) -> list[Offence]:
    """Return every import of a module inside another part, instead of that part's front, sorted by file and line.

    A folder with an ``__init__.py`` has a front; modules below the same folder see each other directly.
    """
    found = []
    for file in sorted(package.rglob("*.py")):
        if file.parent == package and file.stem in FRONT:
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"), str(file))):
            if not isinstance(node, ast.ImportFrom):
                continue
            dotted = _absolute(node, file, package)
            target = package.parent.joinpath(*dotted)
            inside = len(dotted) > 2 and dotted[0] == package.name and target.with_suffix(".py").is_file()
            if inside and dotted[1] not in OPEN and target.parent not in file.parents:
                found.append(Offence(file, node.lineno, _name_of(file, package), ".".join(dotted)))
    return found


def studies_imported(package: Path, studies: str = "sumgp_studies") -> list[Offence]:
    """Return every import of the studies by the library."""
    found = []
    for file in sorted(package.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"), str(file))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            if any(name.split(".")[0] == studies for name in names):
                found.append(Offence(file, node.lineno, _name_of(file, package), studies))
    return found


def _name_of(file: Path, package: Path) -> str:
    return ".".join((package.name, *file.relative_to(package).with_suffix("").parts))


def unplaced(package: Path, order: Sequence[str] = ORDER) -> list[Path]:
    """Return the files whose part has no place in ``order``."""
    return [f for f in sorted(package.rglob("*.py")) if _part(f, package) not in (*FRONT, *order)]


def _dotted(package: str, part: str) -> str:
    return f"{package}.{part}" if part else package


def _part(file: Path, package: Path) -> str:
    return file.relative_to(package).with_suffix("").parts[0]


def _allowed(importer: str, imported: str, order: Sequence[str]) -> bool:
    if importer == imported or (importer, imported) in HANDED_DOWN:
        return True
    return importer in order and imported in order and order.index(imported) < order.index(importer)


def _imported_parts(file: Path, package: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, part) for every import of the package; the part is "" for the package's front page.

    Imports inside functions and under TYPE_CHECKING count: the order is one of ideas, not of loading.
    """
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"), str(file))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _parts_of(node.lineno, alias.name.split("."), [], package)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, file, package)
            yield from _parts_of(node.lineno, base, [alias.name for alias in node.names], package)


def _absolute(node: ast.ImportFrom, file: Path, package: Path) -> list[str]:
    """Return the dotted name, as a list, that ``from ... import`` refers to."""
    named = node.module.split(".") if node.module else []
    if node.level == 0:
        return named
    here = [package.name, *file.relative_to(package).parent.parts]
    return here[: len(here) - node.level + 1] + named


def _parts_of(line: int, dotted: Sequence[str], names: Sequence[str], package: Path) -> Iterator[tuple[int, str]]:
    if not dotted or dotted[0] != package.name:
        return
    if len(dotted) > 1:
        yield line, dotted[1]
        return
    if not names:
        yield line, ""
    for name in names:
        is_part = (package / name).is_dir() or (package / f"{name}.py").is_file()
        yield line, name if is_part else ""


def main(arguments: Sequence[str]) -> int:
    """Check the package folder given, by default src/sumgp next to this file's folder; 0 = in order."""
    package = Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent / "src" / "sumgp"
    if not (package / "__init__.py").is_file():
        print(f"{package}: expected the folder of a package, found no __init__.py there; give its path")
        return 2
    misplaced = unplaced(package)
    for file in misplaced:
        print(f"{file}: has no place in the import order; add it to ORDER in tools/check_imports.py or move the code")
    wrong = [*offences(package), *back_doors(package), *studies_imported(package)]
    for offence in wrong:
        print(offence)
    return 1 if wrong or misplaced else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
