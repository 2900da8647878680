"""A process killed at the worst moment: what was there before is whole, and the next attempt works."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np

import sumgp

FITTED = """
import os, sys, time
import numpy as np
import sumgp
from sumgp.files import archive as files

t = np.linspace(0.0, 3.0, 12)
gp = sumgp.ConstrainedGP("p + q = 1", outputs=["p", "q"], uncertainty="plug-in", restarts=0)
gp.fit(t, np.column_stack([np.sin(t), 1.0 - np.sin(t)]))
"""

# The new content is on disk under its temporary name, and the rename is about to happen.
BEFORE_THE_RENAME = (
    FITTED
    + """
gp.save(sys.argv[1])
print("saved", flush=True)

def wait(*names):
    print("written", flush=True)
    time.sleep(60)

files.os.replace = wait
gp.fit(t, np.column_stack([np.cos(t), 1.0 - np.cos(t)])).save(sys.argv[1])
"""
)

WHILE_FITTING = """
import sys, time
from sumgp import estimator
from sumgp.cli.app import run

class Waiting(estimator.ConstrainedGP):
    def fit(self, *arguments, **choices):
        print("fitting", flush=True)
        time.sleep(60)

import sumgp.cli.fit as command
for module in (command, estimator, sys.modules["sumgp"]):
    if hasattr(module, "ConstrainedGP"):
        module.ConstrainedGP = Waiting
run(sys.argv[1:])
"""


def kill_after(script: str, word: str, *arguments: object) -> None:
    """Run a script and kill it, without any chance to tidy up, once it has printed the word."""
    process = subprocess.Popen([sys.executable, "-c", script, *map(str, arguments)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if line.strip() == word:
            os.kill(process.pid, signal.SIGKILL)
            break
    process.stdout.close()
    assert process.wait() == -signal.SIGKILL


def test_killed_while_writing_a_model(tmp_path: Path) -> None:
    path = tmp_path / "model.sumgp"
    kill_after(BEFORE_THE_RENAME, "written", path)
    t = np.array([0.5, 1.5, 2.5])
    old = sumgp.load(path)
    np.testing.assert_allclose(old.predict(t)[:, 0], np.sin(t), atol=1e-2)
    old.save(path)
    np.testing.assert_array_equal(sumgp.load(path).predict(t), old.predict(t))


def test_killed_while_fitting_leaves_no_output_folder(tmp_path: Path) -> None:
    table = tmp_path / "data.csv"
    table.write_text("t,p,q\n" + "".join(f"{i},{np.sin(i):.4f},{1 - np.sin(i):.4f}\n" for i in range(8)))
    words = ["fit", table, "-c", "p + q = 1", "--inputs", "t", "--outputs", "p,q", "--out", tmp_path / "out"]
    kill_after(WHILE_FITTING, "fitting", *words)
    assert sorted(tmp_path.iterdir()) == [table]
