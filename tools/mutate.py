"""Whether the tests notice wrong formulas: each of a list of mutations is put into a copy of the package and tested there.

``make mutants`` prints a table of mutations, caught or not, and fails if one is not caught. The tests named for a mutation
must pass without it. Arguments: words; only mutations whose name or file holds one of them are tried.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PARTS = ("src", "tests", "tools", "pyproject.toml")
TIME_LIMIT = 300.0  # seconds; a mutation that makes a search endless counts as caught


@dataclass(frozen=True)
class Mutation:
    """``old`` in ``file`` (below src/sumgp) becomes ``new``, and ``tests`` (below tests) should fail."""

    name: str
    file: str
    old: str
    new: str
    tests: str


MUTATIONS = (
    Mutation(
        "transpose in Schur conditioning",
        "numerics/linear_algebra.py",
        "covariance = A @ Sigma @ A.T + D.T",
        "covariance = A.T @ Sigma @ A + D.T",
        "numerics/test_linear_algebra.py",
    ),
    Mutation(
        "transpose in the gradient of Schur conditioning",
        "numerics/linear_algebra.py",
        "self.A.T @ covariance_gradient @ self.A +",
        "self.A @ covariance_gradient @ self.A.T +",
        "numerics/test_linear_algebra.py",
    ),
    Mutation("factor in the evidence gradient", "solvers/dense.py", "G *= 0.5", "G *= 1.0", "solvers/test_dense.py"),
    Mutation(
        "sign in the site update of expectation propagation",
        "paper_method/engines/expectation_propagation.py",
        "1.0 / tilted.variance - 1.0 / tilted.cavity_variance",
        "1.0 / tilted.variance + 1.0 / tilted.cavity_variance",
        "paper_method/test_engines.py",
    ),
    Mutation(
        "sign in the sites of Laplace",
        "paper_method/engines/laplace.py",
        "u + terms.first / np.where(used",
        "u - terms.first / np.where(used",
        "paper_method/test_engines.py",
    ),
    Mutation(
        "slope left out of the Jacobian",
        "laws/law.py",
        "slope = power * f[:, column] ** (power - 1) if power else transform.derivative(f[:, column])",
        "slope = f[:, column] ** power if power else transform.value(f[:, column])",
        "laws/test_laws.py",
    ),
    Mutation(
        "sign of the step in the projection",
        "laws/geometry.py",
        "target, base = -self.g[live], here",
        "target, base = self.g[live], here",
        "laws/test_projection.py",
    ),
    Mutation(
        "the other half of the null space",
        "priors/tasks.py",
        "right[rank:].T",
        "right[:rank].T",
        "priors/test_nullspace.py",
    ),
    Mutation(
        "sign of the determinant in the law's evidence",
        "lawsolve/solve.py",
        "last.at.g, variances) - logs",
        "last.at.g, variances) + logs",
        "lawsolve/test_solve.py",
    ),
    Mutation(
        "branch of the back-transform",
        "transforms/base.py",
        "return _sign(branch) * root if self._is_even else",
        "return root if self._is_even else",
        "test_transforms.py",
    ),
)


def copied(target: Path) -> None:
    """Copy what the tests need."""
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, target / part, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        else:
            shutil.copy2(source, target / part)


def apply(mutation: Mutation, folder: Path) -> str:
    """Put a mutation into the copy and give the file's own text back; ValueError unless ``old`` is there exactly once."""
    path = folder / "src" / "sumgp" / mutation.file
    text = path.read_text(encoding="utf-8")
    if text.count(mutation.old) != 1:
        raise ValueError(
            f"{mutation.file}: expected {mutation.old!r} once, found {text.count(mutation.old)}; update the list"
        )
    path.write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")
    return text


def passes(folder: Path, tests: str) -> bool:
    """True if the tests pass with the package of the copy; tests that do not end in time do not pass."""
    environment = {**os.environ, "PYTHONPATH": str(folder / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-n",
        "0",
        "-p",
        "no:cacheprovider",
        str(folder / "tests" / tests),
    ]
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=TIME_LIMIT, check=False
        )
    except subprocess.TimeoutExpired:
        return False
    # Codes above 1 mean that pytest itself had nothing to run: such a mutation must not count as caught.
    if done.returncode > 1:
        raise RuntimeError(f"{tests}: pytest ended with code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.returncode == 0


def uses_copy(folder: Path) -> bool:
    """True if the copy is what gets imported, not an installed package."""
    environment = {**os.environ, "PYTHONPATH": str(folder / "src")}
    command = [sys.executable, "-c", "import sumgp; print(sumgp.__file__)"]
    found = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True).stdout
    return Path(found.strip()).is_relative_to(folder)


def main(words: list[str]) -> int:
    """Try the mutations and print the table."""
    wanted = [m for m in MUTATIONS if not words or any(w in m.name or w in m.file for w in words)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        copied(folder)
        if not uses_copy(folder):
            raise RuntimeError("the copy is not what gets imported; remove the installed package first")
        sound = {tests: passes(folder, tests) for tests in dict.fromkeys(m.tests for m in wanted)}
        rows = []
        for mutation in wanted:
            before = apply(mutation, folder)
            caught = not passes(folder, mutation.tests)
            (folder / "src" / "sumgp" / mutation.file).write_text(before, encoding="utf-8")
            verdict = ("caught" if caught else "NOT CAUGHT") if sound[mutation.tests] else "TESTS FAIL WITHOUT IT"
            rows.append((mutation, verdict))
            print(f"{verdict:22} {mutation.name} ({mutation.file}, {mutation.tests})", flush=True)
    caught_all = all(verdict == "caught" for _, verdict in rows)
    print(f"{sum(verdict == 'caught' for _, verdict in rows)} of {len(rows)} caught")
    return 0 if caught_all else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
