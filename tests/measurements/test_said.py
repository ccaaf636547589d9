"""What a charge is called, what a price says of unnamed groups, and what an answer shows when it is printed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wpinq
from wpinq.core.plan.phrase import LONGEST
from wpinq.html.numbers import within

QUERY = "SELECT page, COUNT(*) AS n\n  FROM views GROUP BY page"


@pytest.fixture
def views(tmp_path):
    records = [("ann", "a")] * 500 + [("bob", "b")] * 400
    return wpinq.protect(records, budget=500, delta="1e-3", columns={"user": str, "page": str}, name="views",
                         ledger=tmp_path / "ledger")  # fmt: skip


def labels(views):
    (data,) = wpinq.core.sources(views._node)
    return [row.label for row in data.ledger.entries() if row.kind == "charge"]


def test_a_charge_is_called_by_its_name_or_by_the_text_of_the_question(views):
    views.filter(lambda user, page: page != "b").map("page").measure(1)
    views.map("page").measure(1, name="Views of each page")
    views.map("page").count(epsilon=1)
    wpinq.sql(QUERY, {"views": views}, epsilon=1, keys=["a"])
    wpinq.sql("SELECT COUNT(*), COUNT(DISTINCT user) FROM views", {"views": views}, epsilon=1)
    wpinq.sql(QUERY, {"views": views}, epsilon=2, keys=["a"], name="mine")
    text = "SELECT COUNT(*), COUNT(DISTINCT user) FROM views"
    assert labels(views) == [
        "filter(ne(page, 'b')).map(page)", "Views of each page", "map(page).count()",
        "SELECT page, COUNT(*) AS n FROM views GROUP BY page", f"COUNT(*): {text}", f"COUNT(DISTINCT user): {text}",
        "mine",
    ]  # fmt: skip


def test_what_a_charge_is_called_has_a_bound_and_decides_nothing(views):
    condition = " OR ".join(f"page = '{number}'" for number in range(500))
    long = f"SELECT COUNT(*) FROM views WHERE {condition}"
    wpinq.sql(long, {"views": views}, epsilon=1)
    steps = views
    for number in range(100):
        steps = steps.filter(f"page <> 'x{number}'")
    steps.measure(1)
    first, second = labels(views)
    assert len(first) == len(second) == LONGEST and first.startswith("SELECT COUNT(*)") and first.endswith("...")
    assert second.startswith("...") and second.endswith('filter([(col("page")) != ("x99")])')
    before = len(labels(views))
    wpinq.sql(f"{long} ", {"views": views}, epsilon=1)  # the same plan in other words is the same question
    assert len(labels(views)) == before


def test_a_price_says_from_which_count_on_unnamed_groups_are_shown(views):
    told = wpinq.sql(f"EXPLAIN {QUERY}", {"views": views}, epsilon="0.5", delta="1e-6")
    answer = wpinq.sql(QUERY, {"views": views}, epsilon="0.5", delta="1e-6")
    assert told.threshold == answer.threshold > 20
    assert wpinq.sql(f"EXPLAIN {QUERY}", {"views": views}, epsilon="0.5", keys=["a"]).threshold is None
    pages = views.map("page")
    quote = pages.quote(epsilon="0.5")
    assert (
        f"published by release(delta=0.000001): bins whose noisy count is below {answer.threshold:g} are" in f"{quote}"
    )
    assert "few pass that" not in f"{quote}" and "few pass that" in f"{views.map('page').quote(epsilon='0.01')}"
    assert pages.measure(quote=quote).release(delta="1e-6").threshold == answer.threshold


def test_an_answer_that_is_printed_shows_its_numbers_and_one_that_failed_does_not(views, capsys):
    answer = wpinq.sql(QUERY, {"views": views}, epsilon=100, keys=["a", "b", "c"])
    assert "computed when" in repr(answer)
    print(answer)
    shown = capsys.readouterr().out
    assert shown.count(" ± ") == 3 and "500 ± " in shown and "computed when" not in shown
    assert len(labels(views)) == 1


@given(st.floats(-1e6, 1e6), st.floats(1e-2, 1e6), st.floats(-1.5, 1.5))
def test_what_is_shown_of_an_interval_holds_it_and_is_hardly_wider(middle, half, off):
    """The number itself has two digits of its half, so it is moved by a twentieth of that at most."""
    low, high, value = middle - half, middle + half, middle + off * half
    told, slack = within(value, low, high).replace(",", ""), 0.06 * half
    if "±" in told:
        number, reach = map(float, told.split(" ± "))
        least, most = number - reach, number + reach
    else:
        least, most = (float(one) for one in told.split(" (")[1].rstrip(")").split(" to "))
        slack = 1e-6 * half + 1e-9
    assert ("±" in told) == (abs(off) < 0.1) or abs(abs(off) - 0.1) < 1e-6
    assert least <= low + slack and most >= high - slack
    assert least >= low - 0.5 * half and most <= high + 0.5 * half


def test_an_extreme_is_shown_with_both_ends_of_its_interval():
    rows = [(number, number % 10) for number in range(1000)]
    table = wpinq.protect(rows, budget=50, columns={"user": int, "age": int}, name="ages")
    answer = wpinq.sql("SELECT MAX(age) AS oldest FROM ages", {"ages": table}, epsilon=50, bounds={"age": (0, 100)})
    low, high = answer.interval()
    assert low <= answer.value < 20 and high == 100, "nothing says that nobody is older"
    assert f" ({low:g} to 100)" in repr(answer) and "±" not in repr(answer)
