"""Run every example and record what it prints, for the README and the tutorials: python examples/record_outputs.py"""

import contextlib
import io
import os
import runpy
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
NAMES = ("quickstart", "energy", "rates", "composition", "bounds", "gaps", "force_balance", "rigid_body")


def printed(name: str) -> str:
    """What an example prints, run in a folder of its own."""
    text = io.StringIO()
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(text):
        os.chdir(folder)
        try:
            runpy.run_path(str(HERE / f"{name}.py"))
        finally:
            os.chdir(before)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines()) + "\n"


def put_into_readme(output: str) -> None:
    """Replace the block after "prints" in the README."""
    readme = HERE.parent / "README.md"
    before, rest = readme.read_text().split("prints\n\n```text\n", 1)
    _, after = rest.split("```\n", 1)
    readme.write_text(f"{before}prints\n\n```text\n{output}```\n{after}")


if __name__ == "__main__":
    for name in NAMES:
        (HERE / "outputs" / f"{name}.txt").write_text(printed(name))
    put_into_readme((HERE / "outputs" / "quickstart.txt").read_text())
