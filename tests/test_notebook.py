"""The notebook runs and shows what it promises."""

from __future__ import annotations

from pathlib import Path

import nbformat
from nbclient import NotebookClient

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def test_notebook_runs() -> None:
    notebook = nbformat.read(EXAMPLES / "oscillator.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "the notebook is kept without outputs"
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(EXAMPLES)}}).execute()
    printed = [o for cell in notebook.cells if cell.cell_type == "code" for o in cell.outputs]
    assert any("image/png" in o.get("data", {}) for o in printed)
    assert any("law keeps" in o.get("text", "") for o in printed)
