"""What is said while a law is typed."""

from __future__ import annotations

import pytest

from sumgp.app.choice import Choice, Constant
from sumgp.app.feedback import law_feedback
from sumgp.laws.formula import constant_names

COLUMNS = ["t", "z", "v", "total", "p1", "p2"]


def said(law: str, *constants: Constant, outputs: tuple[str, ...] = ("z", "v")):
    return law_feedback(Choice(("t",), outputs, law, constants), COLUMNS)


def test_an_understood_law_is_explained() -> None:
    found = said("z + v = 1")
    assert found.state == "understood"
    assert any(line.startswith("strategy: Conditioned") for line in found.lines)
    assert said("  ").state == "empty"
    assert law_feedback(Choice(("t",), (), "z = 1"), COLUMNS).state == "incomplete"


@pytest.mark.parametrize(
    ("law", "place"),
    [
        ("z + v = 1 +", (11, 12)),
        ("z + v = 1\nz $ v = 2", (12, 13)),
        ("z + v", (5, 6)),
        ("2z = v", (1, 2)),
        ("(z + v = 1", (0, 1)),
    ],
)
def test_a_mistake_is_pointed_at_in_the_text_as_typed(law: str, place: tuple[int, int]) -> None:
    found = said(law)
    assert found.state == "mistake"
    assert found.place is not None
    assert (found.place.start, found.place.end) == place
    line = law.splitlines()[-1]
    assert found.shown == line
    assert found.carets.index("^") == place[0] - law.index(line)


def test_a_mistyped_function_has_a_repair_that_leads_to_a_law() -> None:
    law = "sqrrt(z) + v = 1"
    found = said(law)
    assert found.state == "mistake"
    (repair,) = found.repairs
    assert (law[: repair.start] + repair.text + law[repair.end :]).startswith("sqrt(")
    assert said("sqr(z) + v = 1").repairs == ()  # a square to some, a root to others


def test_names_that_are_no_columns_are_constants() -> None:
    found = said("k/2*z**2 + m/2*v**2 = E")
    assert [c.name for c in found.constants] == ["k", "m", "E"]
    assert found.state == "incomplete"
    assert "k and m and E are" in found.message
    done = said("k/2*z**2 + m/2*v**2 = E", Constant("k", number="1"), Constant("m", number="1,5"), Constant("E", "unknown"))
    assert done.state == "understood"
    assert done.constants[1].value == 1.5


def test_a_mistyped_column_may_be_a_constant_or_be_repaired() -> None:
    found = said("zz + v = 1")
    assert found.state == "incomplete"
    assert [(r.text, r.start, r.end) for r in found.repairs] == [("z", 0, 2)]


def test_a_column_of_that_name_gives_the_constant() -> None:
    found = said("z + v = total")
    assert found.state == "understood"
    assert found.constants == (Constant("total", "column", "", "total"),)
    assert any("total" in line and "also for predictions" in line for line in found.lines)


@pytest.mark.parametrize(
    ("law", "says"),
    [
        (
            "d(z, t) = v",
            ["d(z, t) = v: holds everywhere, by construction.", "d(z, t) is the rate at which z changes with t."],
        ),
        ("dz/dt = v", ["dz/dt = v: holds everywhere, by construction.", "d(z, t) is the rate at which z changes with t."]),
        (
            "dz/dt = v; v >= 0",
            [
                "dz/dt = v: holds everywhere, by construction.",
                "d(z, t) is the rate at which z changes with t.",
                "v >= 0: no prediction crosses this bound.",
                "Where a bound moves a prediction, laws with derivatives do not hold.",
            ],
        ),
        ("z + v = 1 ± 0.5", ["z + v = 1 ± 0.5: holds up to a standard deviation of 0.5."]),
        ("z + v = 1 +- unknown", ["z + v = 1 +- unknown: holds up to an error that is estimated from complete rows."]),
        ("all >= 0", ["z >= 0: no prediction crosses this bound.", "v >= 0: no prediction crosses this bound."]),
        ("z <= total", ["z <= total: no prediction crosses this bound."]),
    ],
)
def test_derivatives_bounds_and_errors_are_said_in_plain_words(law: str, says: list[str]) -> None:
    found = said(law)
    assert (found.state, list(found.plain)) == ("understood", says)
    assert [c.name for c in found.constants] == (["total"] if "total" in law else [])


def test_unknown_constants_of_a_differential_equation_are_told() -> None:
    found = said("d(z, t) = r*z; v = 1", Constant("r", "unknown"))
    assert "Estimated from the data, with an interval: r." in found.plain


def test_families_points_and_numbers_are_no_constants() -> None:
    assert constant_names("sum(p) = pi*S", ["p1", "p2"], ["t"]) == ["S"]
    assert constant_names("norm(a, b) = L", ["a_x", "a_y", "b_x", "b_y"], ["t"]) == ["L"]
    assert constant_names("z = q; v = q + r", ["z", "v"], ["t"]) == ["q", "r"]


@pytest.mark.parametrize(
    "law", ["z = " + "(" * 200 + "v", "z" * 5000 + " = v", "z = 1e999", "`z = v", "__import__('os') = z"]
)
def test_hostile_laws_are_answered(law: str) -> None:
    assert said(law).state in ("mistake", "incomplete")
