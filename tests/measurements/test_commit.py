"""Commits: several queries are charged together or not at all, once, whatever happens meanwhile."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from fractions import Fraction

import processes
import pytest
from depth import deep, thin
from quoting import book, entries, opaque, table, waiting

import wpinq
from wpinq.core.ledger import Ledger
from wpinq.core.measurements import query as charged
from wpinq.core.measurements.query import commit
from wpinq.errors import BudgetError


def test_a_query_over_what_cannot_be_fingerprinted_is_charged_as_a_whole_or_not_at_all():
    """Three answers at 0.5 each, and a budget of 1: two of them would fit."""
    found, ledger = opaque()
    query = "SELECT page, COUNT(*) AS c, SUM(n) AS s, AVG(n) AS m FROM t GROUP BY page"
    with pytest.raises(BudgetError, match="nothing was charged"):
        wpinq.sql(query, {"t": found}, epsilon=1.5, keys=["a"], bounds={"n": (0, 10)})
    assert ledger.spent() == (0, 0)
    answer = wpinq.sql(query, {"t": found}, epsilon=1, keys=["a"], bounds={"n": (0, 10)})
    assert len(answer.rows) == 1
    assert ledger.spent()[0] == 1
    assert len(entries(ledger)) == 3


def test_a_query_over_what_cannot_be_fingerprinted_is_charged_at_once():
    found, ledger = opaque(budget=100, delta=Fraction(1, 100))
    query = "SELECT page, COUNT(*) AS c, MEDIAN(n) AS s FROM t GROUP BY page"
    answer = wpinq.sql(query, {"t": found}, epsilon=80, keys=["a", "b"], bounds={"n": (0, 10)})
    assert sorted(row[0] for row in answer.rows) == ["a", "b"]
    assert ledger.spent() == (80, 0)
    assert [one.kind for one in ledger.entries()][1:3] == ["charge"] * 2  # before anything was sealed and answered


@pytest.mark.parametrize("split", ["0.5", None])
def test_a_release_of_degrees_that_cannot_be_fingerprinted_is_charged_as_a_whole(split):
    found, ledger = opaque()
    with pytest.raises(BudgetError, match="nothing was charged"):
        wpinq.degrees.release(found.map(lambda page: page), epsilon=1.5, split=split)
    assert ledger.spent() == (0, 0)


def test_a_quote_of_two_data_sets_shows_and_charges_both():
    """The second one's records weigh half as much in the noise."""
    one, other = table(name="one"), table(budget="0.1", name="other")
    both = one.map("page").concat(one.map("user")).concat(other.map("page"))
    quote = both.quote("0.3")
    assert [(price.name, price.epsilon, price.fits) for price in quote.prices] == [
        ("one", Fraction(3, 10), True), ("other", Fraction(3, 20), False),
    ]  # fmt: skip
    with pytest.raises(BudgetError, match="nothing was charged"):
        both.measure(quote=quote)
    assert book(one).spent() == book(other).spent() == (0, 0)
    assert not waiting(one)
    assert not waiting(other)


def test_several_quotes_are_charged_together_or_not_at_all():
    one, other = table(name="one"), table(budget="0.1", name="other")
    quotes = [one.quote("0.2"), other.quote("0.2"), one.quote("0.3")]
    with pytest.raises(BudgetError, match=r"costs epsilon 0.2, 0.1 is left of data set 'other'"):
        commit(quotes)
    with pytest.raises(
        BudgetError, match=r"costs epsilon 1.2 with what is charged beside it, 1 is left.*so far: nothing"
    ):
        commit([one.quote("0.4", name=str(name)) for name in range(3)])
    with pytest.raises(BudgetError, match=r"costs epsilon 3.6 with what is charged beside it, 1 is left"):
        commit([one.quote("1.2", name=str(name)) for name in range(3)])  # it told what the first costs
    book(one).cap("ann", "0.5")
    with pytest.raises(BudgetError, match=r"costs epsilon 0.9, 0.5 is left of the cap of analyst 'ann'"):
        commit([one.quote("0.3", name=str(name), analyst="ann") for name in range(3)])
    assert book(one).spent() == book(other).spent() == (0, 0)
    assert not waiting(one)
    assert len(commit([quotes[0], quotes[2], quotes[0]])) == 3
    assert book(one).spent()[0] == Fraction(1, 2)


def test_no_epoch_closes_while_a_query_of_it_is_charged(monkeypatch):
    """Else the query of the one would be answered from the records of the next."""
    live = wpinq.live({"page": str}, budget=90)
    live.send([("a",)])
    closed, charge_all = [], charged.charge_all

    def slowly(*given):
        one = threading.Thread(target=lambda: closed.append(live.advance()))
        one.start()
        one.join(0.2)
        assert not closed
        return charge_all(*given)

    monkeypatch.setattr(charged, "charge_all", slowly)
    made = live.measure(80)
    while not closed:
        time.sleep(0.001)
    assert made.key_owner.version.endswith("epoch 1")
    assert made.observe("a") == 1
    live.close()


def test_an_interrupt_after_the_charge_loses_nothing_that_was_quoted(monkeypatch):
    """A plan that cannot be fingerprinted is charged anew whenever it is asked, but not where its quote is held."""
    found, ledger = opaque(budget=90)
    quote, wait = found.quote(40), charged.wait

    def interrupted(query):
        raise KeyboardInterrupt

    monkeypatch.setattr(charged, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        found.measure(quote=quote)
    monkeypatch.setattr(charged, "wait", wait)
    assert ledger.spent()[0] == 40
    assert found.measure(quote=quote).observe(("a", 1)) == 20
    assert ledger.spent()[0] == 40


ASK = """
import os, signal, sys, wpinq
from wpinq.core.measurements import query as charged
point, path, name = sys.argv[1:]
views = wpinq.protect(path, budget=2, columns={"page": str, "n": int})
def die(*_): os.kill(os.getpid(), signal.SIGKILL)
if point == "charged":
    charge_all = charged.charge_all
    charged.charge_all = lambda *given: die(charge_all(*given))
if point == "sealed": charged.Words = die
if point == "together":
    print("ready", flush=True)
    sys.stdin.readline()
query = "SELECT page, COUNT(*) AS c, SUM(n) AS s, AVG(n) AS m FROM views GROUP BY page"
try:
    found = wpinq.sql(query, {"views": views}, epsilon=1.5, keys=["a", "b"], bounds={"n": (0, 10)}, name=name)
    print(found.rows)
except wpinq.BudgetError as error:
    print("refused")
"""


def started(*arguments):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", ASK, *map(str, arguments)]
    return processes.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "views.csv"
    path.write_text("page,n\n" + "a,1\nb,2\n" * 20)
    return path


@thin(4)
@pytest.mark.parametrize("point", ["charged", "sealed"])
def test_a_query_that_is_killed_after_its_charge_is_charged_once_and_answered_alike(file, point):
    killed = started(point, file, "q")
    assert (killed.communicate(timeout=60)[0], killed.returncode) == ("", -9)
    ledger = Ledger.existing(file.with_name("views.csv.ledger"))
    assert ledger.spent()[0] == Fraction(3, 2)
    one, two = (started("", file, "q").communicate(timeout=60)[0] for _ in range(2))
    assert one == two != "refused\n"
    assert ledger.spent()[0] == Fraction(3, 2)
    assert len(entries(ledger)) == 3


@deep
def test_of_two_processes_that_commit_at_once_one_is_charged_as_a_whole(file):
    """Each asks three things for 1.5 in all, and there are 2."""
    both = [started("together", file, name) for name in ("one", "two")]
    for one in both:
        assert one.stdout.readline() == "ready\n"
    for one in both:
        one.stdin.write("go\n")
        one.stdin.flush()
    answers = [one.communicate(timeout=60)[0] for one in both]
    assert sorted(answer == "refused\n" for answer in answers) == [False, True]
    ledger = Ledger.existing(file.with_name("views.csv.ledger"))
    assert ledger.spent()[0] == Fraction(3, 2)
    assert len({one.label for one in entries(ledger)}) == 1
    assert len(entries(ledger)) == 3
