"""Run the numerically sensitive tests as CPUs of other kinds would: make test-cpus

OpenBLAS takes the kernels of the CPU that OPENBLAS_CORETYPE names, NumPy leaves out loops that NPY_DISABLE_CPU_FEATURES
names. Kernels that this CPU cannot run are left out, with a word. The plugin ``support.last_bit`` stands in for them.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from dataclasses import dataclass, field

from numpy._core._multiarray_umath import __cpu_dispatch__

KERNELS = ("Nehalem", "Haswell", "Zen", "SkylakeX")
SENSITIVE = (
    "tests/calibration",
    "tests/conformance",
    "tests/equivalence",
    "tests/hyperparameters",
    "tests/laws",
    "tests/lawsolve",
    "tests/paper_method",
    "tests/numerics",
    "tests/priors",
    "tests/properties",
    "tests/solvers",
    "tests/strategies",
    "tests/test_docs_examples.py",
    "tests/test_readme.py",
)
SHORT = (
    "tests/solvers/markov/test_law.py",
    "tests/numerics",
    "tests/test_docs_examples.py",
)
# Products of the sizes that choose the kernels; prints which kernels are in use. Dies where the CPU lacks an instruction.
PROBE = """
import numpy as np, scipy.linalg
from threadpoolctl import threadpool_info
A = np.eye(150) + 0.01
np.linalg.eigh(A @ A), scipy.linalg.cholesky(A)
print(", ".join(sorted({str(pool.get("architecture")) for pool in threadpool_info()})))
"""


@dataclass(frozen=True)
class Setting:
    """Variables of the environment, and further words for pytest."""

    name: str
    variables: dict[str, str]
    words: tuple[str, ...] = field(default=())

    def environment(self) -> dict[str, str]:
        return {**os.environ, **self.variables}


def settings() -> list[Setting]:
    """Four kinds of kernels, NumPy without its wide loops, and results of LAPACK with another last bit."""
    kernels = [Setting(name, {"OPENBLAS_CORETYPE": name}) for name in KERNELS]
    narrow = Setting("NumPy without wide loops", {"NPY_DISABLE_CPU_FEATURES": " ".join(__cpu_dispatch__)})
    path = os.pathsep.join(filter(None, ["tests", os.environ.get("PYTHONPATH", "")]))
    return [*kernels, narrow, Setting("last bits flipped", {"PYTHONPATH": path}, ("-p", "support.last_bit"))]


def kernels_in_use(setting: Setting) -> str | None:
    """Names of the kernels that are run, None where this CPU cannot run them."""
    done = subprocess.run([sys.executable, "-c", PROBE], env=setting.environment(), capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def main() -> int:
    """Exit status: the number of settings whose tests fail."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--short", action="store_true", help="after make test: a few files only, each kind of kernel once, not those in use"
    )
    short = parser.parse_args().short
    failed, seen = [], {(kernels_in_use(Setting("own", {})), None, ())} if short else set()
    for setting in settings():
        kernels = kernels_in_use(setting)
        if kernels is None:
            print(f"{setting.name}: left out, this CPU cannot run these kernels", flush=True)
            continue
        key = (kernels, setting.variables.get("NPY_DISABLE_CPU_FEATURES"), setting.words)
        if key in seen:
            print(f"{setting.name}: runs the {kernels} kernels, tested already", flush=True)
            continue
        seen.add(key)
        print(f"{setting.name}: {kernels} kernels", flush=True)
        words = [sys.executable, "-m", "pytest", "-q", *setting.words, *(SHORT if short else SENSITIVE)]
        if subprocess.run(words, env=setting.environment()).returncode != 0:
            failed.append(setting.name)
    print(f"tests fail with: {', '.join(failed)}" if failed else "tests pass with every setting that this CPU can run")
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
