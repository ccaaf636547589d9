"""What a budget holds, asked from Python; and epsilons that add up to it."""

from fractions import Fraction

import pytest

import wpinq
from wpinq.errors import BudgetError, ExactnessError, LedgerError, PlanError


@pytest.fixture
def views(tmp_path):
    (tmp_path / "v.csv").write_text("user,page\nann,a\n")
    return wpinq.protect(tmp_path / "v.csv", budget=1)


def test_it_says_what_was_spent_on_what_and_what_is_left(views, tmp_path):
    views.measure(epsilon="1/3", name="<b>first")
    for found in (
        views.budget,
        wpinq.budget(views),
        *map(wpinq.budget, (tmp_path / "v.csv", tmp_path / "v.csv.ledger")),
    ):
        assert (found.total, found.spent, found.left) == (1, Fraction(1, 3), Fraction(2, 3))
        assert found.questions == {"<b>first": Fraction(1, 3)}
    assert views.map("page").left == Fraction(2, 3)
    assert repr(views.budget).startswith("Epsilon 2/3 of 1 is left for v.csv.")
    assert "&lt;b&gt;first" in views.budget._repr_html_()


def test_what_has_no_ledger_or_several_is_refused(views, tmp_path):
    with pytest.raises(LedgerError, match="there is none"):
        wpinq.budget(tmp_path / "none.ledger")
    with pytest.raises(PlanError, match="takes a protected collection"):
        wpinq.budget(5)
    other = wpinq.protect([("ann", "b")], budget=1, columns={"user": str, "page": str})
    with pytest.raises(PlanError, match="several ledgers"):
        _ = views.map("page").concat(other.map("page")).budget


def test_parts_fit_exactly_and_are_the_same_when_asked_again(views):
    for place, epsilon in enumerate(views.budget.split(11)):
        views.measure(epsilon=epsilon, name=f"q{place}")
    assert views.left == 0
    for place, epsilon in enumerate(views.budget.split(11)):
        views.measure(epsilon=epsilon, name=f"q{place}")
    assert views.budget.split([2, 1, 1]) == [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)]
    for wrong in (0, -1, [], [0], "12", True, 1.5):
        with pytest.raises(ExactnessError, match=r"split\(...\)"):
            views.budget.split(wrong)


def test_eleven_floats_of_an_eleventh_fit(views):
    for place in range(11):
        views.measure(epsilon=1 / 11, name=f"q{place}")
    assert views.left == 0


def test_a_shortfall_by_rounding_says_what_to_write(views):
    views.measure(epsilon="0.5")
    with pytest.raises(BudgetError, match="write '1/11'"):
        views.map("page").measure(epsilon="0.50000000000000001")
    with pytest.raises(BudgetError) as refused:
        views.map("page").measure(epsilon="0.6")
    assert "1/11" not in str(refused.value)
