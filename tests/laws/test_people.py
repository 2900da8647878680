"""Formulas as people type them: understood rightly, or refused with a hint that leads to the right law."""

from __future__ import annotations

import re
from types import SimpleNamespace
from unicodedata import normalize

import numpy as np
import pytest
from laws.people_code_corpus import MISTYPED, TYPED
from laws.people_corpus import HINTED, UNDERSTOOD, Hinted, Understood
from laws.people_new_corpus import READ, SLIPS, Read

from sumgp import ConstraintError, parse_constraint
from sumgp.laws import FormulaConstraint
from sumgp.laws.formula.hint_texts import FUNCTIONS
from sumgp.laws.formula.hints import near_name, unknown_function


def test_there_are_sixty_of_each_kind() -> None:
    corpora = (*UNDERSTOOD, *HINTED), (*READ, *SLIPS), (*TYPED, *MISTYPED)
    texts = [case.text for corpus in corpora for case in corpus]
    assert len(set(texts)) == len(texts)
    assert min(map(len, corpora)) >= 60


@pytest.mark.parametrize("case", [*READ, *TYPED], ids=lambda case: case.text)
def test_derivatives_bounds_and_errors_are_read_as_meant(case: Read) -> None:
    outputs, inputs = case.outputs.split(), case.inputs.split()
    constraint = FormulaConstraint(case.text, case.constants)
    law, bounds = constraint.bind(outputs, inputs), constraint.bounds(outputs, inputs)
    x = np.zeros((7, len(inputs)))
    f = np.random.default_rng(len(case.text)).uniform(0.2, 0.9, size=(7, len(outputs) + len(law.derivatives)))
    named = dict(zip(outputs, f.T, strict=False))
    for column, derivative in zip(f.T[len(outputs) :], law.derivatives, strict=True):
        by = "".join(name * order for name, order in zip(inputs, derivative.orders, strict=True))
        named[f"{outputs[derivative.output]}_{by}"] = column
    values = SimpleNamespace(**named)
    assert (law.n_rows, len(bounds)) == (len(case.laws), len(case.bounds))
    for row, meant in enumerate(case.laws):
        np.testing.assert_allclose(law.residual(f, x)[:, row], meant(values), rtol=1e-12, atol=1e-12)
    for bound, meant in zip(bounds, case.bounds, strict=True):
        g = bound.residual(f[:, : len(outputs)], x)[:, 0]
        np.testing.assert_allclose(g, meant(values), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(law.noise, case.sds or np.zeros(len(case.laws)))


@pytest.mark.parametrize("case", UNDERSTOOD, ids=lambda case: case.text)
def test_understood_as_meant(case: Understood) -> None:
    names = case.outputs.split()
    law = parse_constraint(case.text, names, constants=case.constants)
    f = np.random.default_rng(len(case.text)).uniform(0.2, 0.9, size=(7, len(names)))
    # Names as Python reads them: F1 for F₁, no signs.
    values = {re.sub(r"[+-]", "", normalize("NFKC", name)): f[:, i] for i, name in enumerate(names)}
    meant = case.meaning(SimpleNamespace(**values))
    np.testing.assert_allclose(law.residual(f, np.zeros((7, 0)))[:, 0], meant, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("case", [*HINTED, *SLIPS, *MISTYPED], ids=lambda case: case.text)
def test_refused_with_a_hint_that_leads_to_the_law(case: Hinted) -> None:
    names = case.outputs.split()
    given = {} if "constants=" in case.phrase else case.constants
    with pytest.raises(ConstraintError) as caught:
        _read(case.text, names, given)
    message = str(caught.value)
    assert case.phrase in message
    assert ("did you mean" in message) == ("did you mean" in case.phrase)
    if case.instead:
        _read(case.instead, names, case.constants)


def _read(text: str, outputs: list[str], constants: dict[str, float]) -> None:
    constraint = FormulaConstraint(text, constants)
    constraint.bind(outputs, ["t"])
    constraint.bounds(outputs, ["t"])


@pytest.mark.parametrize(
    "name", ["log10", "log2", "min", "max", "sign", "asinh", "sinc", "v²", "exp2", "mod", "round", "sec"]
)
def test_no_function_is_suggested_for_another(name: str) -> None:
    assert name in FUNCTIONS or "did you mean" not in unknown_function(name)


@pytest.mark.parametrize(
    ("name", "known"),
    [
        *[("v2", ["v"]), ("p4", ["p1", "p2"]), ("p14", ["p1"]), ("dz", ["z"]), ("Δz", ["z"]), ("mv", ["m", "v"])],
        *[("T_in", ["T_out"]), ("x_max", ["x_min"]), ("S", ["s1", "s2"]), ("az", ["a", "z"]), ("vx", ["vy"]), ("E", ["e2"])],
    ],
)
def test_names_that_mean_something_else_are_not_suggested(name: str, known: list[str]) -> None:
    assert near_name(name, known) == ""


def test_log10_of_a_number_is_exact_enough() -> None:
    law = parse_constraint("a = log10(1000)", ["a"])
    assert law.residual(np.array([[3.0]]), np.zeros((1, 0)))[0, 0] == pytest.approx(0.0, abs=1e-14)


def test_superscripts_are_not_part_of_names_and_quotes_keep_them() -> None:
    law = parse_constraint("`v²` + w² = 1", ["v²", "w"])
    assert law.residual(np.array([[2.0, 3.0]]), np.zeros((1, 0)))[0, 0] == pytest.approx(10.0)
