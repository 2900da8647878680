"""A built wheel in an empty environment: import, fit, store, and the commands that a first visitor calls.

``make test-wheel`` builds the wheel, installs it beside nothing else and runs this file with that Python.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import sumgp


def fit_and_load(folder: Path) -> None:
    """The energy law of an oscillator: on the law, and the same after a model file."""
    t = np.linspace(0.0, 6.0, 15)
    noise = 0.03 * np.random.default_rng(1000).standard_normal((len(t), 2))
    gp = sumgp.ConstrainedGP("z**2/2 + v**2/2 = 0.5", outputs=["z", "v"], inputs=["t"])
    gp.fit(t, np.column_stack([np.sin(t), np.cos(t)]) + noise)
    posterior = gp.posterior(t)
    assert np.max(np.abs(posterior.residual())) < 1e-9, "the mean is not on the law"
    gp.save(folder / "model.sumgp")
    again = sumgp.load(folder / "model.sumgp").posterior(t)
    assert np.array_equal(again.mean, posterior.mean), "a loaded model predicts otherwise"


def commands(folder: Path) -> None:
    """The program, from beside the interpreter that the wheel was installed for."""
    program = str(Path(sys.executable).with_name("sumgp"))
    for words in (["--version"], ["check", "a + b = 1", "--outputs", "a,b"], ["demo", "--out", str(folder / "demo")]):
        subprocess.run([program, *words], check=True, cwd=folder, stdout=subprocess.DEVNULL)
    assert (folder / "demo").is_dir(), "the demo wrote nothing"


def main() -> int:
    """Run all; 0 = the installed package works."""
    if "site-packages" not in sumgp.__file__:
        print(f"{sumgp.__file__}: expected the installed package; run this file by make test-wheel")
        return 2
    with tempfile.TemporaryDirectory() as name:
        fit_and_load(Path(name))
        commands(Path(name))
    print(f"sumgp {sumgp.__version__}: the wheel works")
    return 0


if __name__ == "__main__":
    sys.exit(main())
