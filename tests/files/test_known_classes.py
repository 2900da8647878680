"""Classes that may stand in a model file: told from the class alone, each by a name of its own."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

import sumgp
from sumgp.files.nodes import is_known, known_classes, modules, public_dataclasses
from sumgp.laws.formula.tree import Number
from sumgp.prediction import Posterior
from sumgp.transforms import Power, Square


def test_no_two_parts_use_one_name():
    names = Counter(name for module in modules() for name in public_dataclasses(module))
    assert [name for name, count in names.items() if count > 1] == []


def test_a_class_is_known_by_itself_as_by_the_list():
    assert all(is_known(kind) for kind in known_classes().values())
    assert not is_known(Posterior)
    assert not is_known(Number)

    @dataclass(frozen=True)
    class Foreign:
        x: int

    assert not is_known(Foreign)


def test_a_power_in_the_papers_strategy_is_stored(tmp_path):
    t = np.linspace(0.2, 1.0, 8)
    Y = np.column_stack([t, (2.0 - t**3) ** 0.5])
    law = sumgp.SumConstraint([sumgp.Term("a", 1.0, Power(3)), sumgp.Term("b", 1.0, Square())], total=2.0)
    gp = sumgp.ConstrainedGP(law, outputs=["a", "b"], inputs=["t"], strategy="transformed", uncertainty="plug-in").fit(
        t[:, None], Y
    )
    gp.save(tmp_path / "m.sumgp")
    again = sumgp.load(tmp_path / "m.sumgp")
    np.testing.assert_array_equal(again.predict(t[:, None]), gp.predict(t[:, None]))
