"""Quotes: what is charged is what was quoted, all of it or nothing, once."""

from __future__ import annotations

import sys
from fractions import Fraction

import pytest
from default_engine import flow
from quoting import Opaque, book, entries, opaque, table

import wpinq
from wpinq.aggregates.keywords import Options
from wpinq.aggregates.order_statistics import ask_median
from wpinq.core.plan import node as plan
from wpinq.errors import PlanError


def test_a_quote_spends_nothing_and_says_what_is_charged():
    pages = table(unit=wpinq.users("user", at_most=4)).map("page")
    pages.measure("0.25")
    quote = pages.quote("0.5", name="again")
    text = str(quote)
    assert book(pages).spent()[0] == Fraction(1, 4)
    assert repr(quote) == text
    assert "noise of scale 8" in text
    assert "with probability 0.95" in text
    assert "now: epsilon 0.5 to pay; data set 'views' has 0.75 left, and 0.25 afterwards" in text
    (price,) = quote.prices
    assert (price.name, price.epsilon, price.left, price.fits) == ("views", Fraction(1, 2), Fraction(3, 4), True)
    assert [(data.name, move) for data, move in quote.sensitivities.items()] == [("views", 4)]
    made = pages.measure(quote=quote)
    assert (made.question, made.scale, made.epsilon) == (quote.question, quote.scale, quote.epsilon)
    assert [one.question for one in entries(book(pages))][-1] == quote.question
    assert book(pages).spent()[0] == Fraction(3, 4)
    assert "nothing more to pay; data set 'views' has epsilon 0.25 left" in str(quote)
    assert "data set 'views' has 0.25 left, which is too little" in str(pages.quote(2))


def test_the_price_of_a_part_is_what_it_adds():
    parts = table().partition("page", ["a", "b"])
    parts["a"].measure("0.5")
    assert parts["b"].quote("0.75").prices[0].epsilon == Fraction(1, 4)


@pytest.mark.parametrize("known", [True, False])
def test_a_quote_that_is_committed_twice_is_one_query(known):
    pages, ledger = (table(budget=90).map("page"), None) if known else opaque(budget=90)
    ledger = ledger or book(pages)
    quote, other = pages.quote(40), pages.quote(40)
    assert (quote.question == other.question) is known
    bins = ["a", "b", "c"] if known else [("a", 1), ("b", 2), ("c", 3)]
    one, two = pages.measure(quote=quote), pages.measure(quote=quote)
    assert one.observe_many(bins).tolist() == two.observe_many(bins).tolist()
    assert ledger.spent()[0] == 40
    pages.measure(quote=other)
    assert ledger.spent()[0] == (40 if known else 80)


def test_what_is_not_charged_has_no_answer_and_runs_nothing(monkeypatch):
    ran = []
    monkeypatch.setattr(flow, "run", ran.append)
    views = table(budget=90)
    quotes = [views.quote(1), views.window(1, at="n").quote(1), ask_median(views, "n", (0, 9), 1, Options()).quote]
    for quote, ask in zip(quotes, ["observe", "at", "answer"], strict=True):
        made = quote.kind(quote)
        if ask == "at":  # a window is charged by itself, where not all of them are
            continue
        with pytest.raises(PlanError, match="not charged yet"):
            made.observe(("ann", "a", 1)) if ask == "observe" else made.answer().frame
    assert not ran
    assert book(views).spent() == (0, 0)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"epsilon": 1}, "leave them"),
        ({"name": "x"}, "leave them"),
        ({"mechanism": "laplace"}, "leave them"),
        ({"continual": True}, "leave them"),
        ({"quote": "0.1"}, "takes what quote"),
    ],
)
def test_a_quote_says_all(more, reason):
    pages = table().map("page")
    with pytest.raises(PlanError, match=reason):
        pages.measure(**{"quote": pages.quote("0.1"), **more})
    with pytest.raises(PlanError, match="another collection"):
        table().map("page").measure(quote=pages.quote("0.1"))
    assert book(pages).spent() == (0, 0)


class Pays(Opaque):
    """Charges for what was quoted while a dataflow runs, and notes what came of it."""

    seen: list[str] = []  # noqa: RUF012  of the class, so that copies share it

    def same(self, text):
        try:
            self.views.measure(quote=self.quote)
        except PlanError as error:
            self.seen.append(str(error))
        return text


def test_a_function_of_a_dataflow_commits_no_quote():
    """It would be charged or not by the records that it sees."""
    thing = Pays()
    thing.views = table(budget=90)
    thing.quote = thing.views.quote(1)
    asked = thing.views.map(lambda page: thing.same(page), columns={"page": str}).measure(40)  # noqa: PLW0108
    assert asked.observe("a") == 20
    assert Pays.seen
    assert all("called by a function of a dataflow" in one for one in Pays.seen)
    assert book(thing.views).spent()[0] == 40


def test_a_quote_of_an_epoch_that_has_closed_is_refused():
    live = wpinq.live({"page": str}, budget=90)
    quote, forever = live.quote(40), live.quote(40, continual=True)
    live.send([("a",)])
    live.advance()
    with pytest.raises(PlanError, match=r"epoch 1 of live, which has closed.*Nothing was charged"):
        live.measure(quote=quote)
    assert book(live).spent() == (0, 0)
    assert not live._log.pending
    later = live.measure(quote=forever)  # speaks of each epoch that closes from now on
    now = live.measure(quote=live.quote(40))
    live.advance()
    assert later.observe("a") == now.observe("a") == 1
    live.close()


def test_one_walk_over_a_plan_prices_it():
    pages = table().map("page").shave().map(lambda index: index)
    walks = []

    def profile(frame, event, _):
        if event == "call" and frame.f_code is plan.steps.__code__:
            walks.append(frame)

    sys.setprofile(profile)
    try:
        pages.measure("0.1")
    finally:
        sys.setprofile(None)
    assert len(walks) == 1
