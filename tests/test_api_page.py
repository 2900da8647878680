"""The examples on docs/api.md run as they stand."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import Matern

import sumgp

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "api.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)


def test_examples_run_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    x = np.linspace(0.0, 1.0, 6)
    Y = np.column_stack([x**2, 1.0 - x**2])
    Y += 0.01 * np.random.default_rng(0).standard_normal(Y.shape)
    names: dict[str, object] = {"sumgp": sumgp, "Matern": Matern, "law": "a**2 + b**2 = 1", "X_new": x, "X": x, "Y": Y}
    names |= {"X1": x, "Y1": Y, "X2": x, "Y2": Y}
    assert len(EXAMPLES) >= 8
    for example in EXAMPLES:
        exec(compile(example, "docs/api.md", "exec"), names)
    assert os.listdir(tmp_path) == ["model.sumgp"]
    assert list(names["results"]["status"]) == ["converged"] * 2  # type: ignore[index]
