"""What a server keeps in memory is bounded by bytes, and what is kept shows in no status and no answer."""

import asyncio
import threading
import tracemalloc

import pytest
from depth import deep
from serving import CONFIG, serving, written

from wpinq.apps.serve.refusals import RefusedError
from wpinq.apps.serve.work_queue import Charged, Desk, Kept, weight
from wpinq.core.ledger import Ledger

ROWS = 100


def table(number):
    return [[f"page {number} {row}", float(row)] for row in range(ROWS)]


@deep
def test_ten_thousand_answers_take_no_more_than_their_bound():
    memory, few = 200_000, 5

    async def asks(count):
        desk = Desk(16, 100_000, memory)
        for number in range(count):
            await desk.answered("ann", number, lambda number=number: Charged("views", lambda: table(number)[:few]))
        return desk

    tracemalloc.start()
    try:
        desk = asyncio.run(asks(300))
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert 0.9 * memory < desk.cache.taken <= memory and taken < 2 * memory
    desk = asyncio.run(asks(10_000))
    assert 0.9 * memory < desk.cache.taken <= memory and desk.cache.get(9_999) == table(9_999)[:few]


def test_the_number_bounds_too_and_what_is_larger_than_all_is_not_kept():
    kept = Kept(3, 1_000)
    for number in range(5):
        kept.put(number, number, 10)
    assert len(kept) == 3 and kept.get(1) is None and kept.get(2) == 2
    kept.put("large", "x", 1_001)
    kept.put("whole", "y", 985)
    assert kept.get("large") is None and kept.get("whole") == "y" and kept.get(2) == 2 and len(kept) == 2
    kept.put("whole", "z", 1)
    assert kept.taken == 11


@pytest.mark.parametrize("value", [table(1), {"a": table(2)}, ("x" * 10_000, b"y" * 10_000)])
def test_the_weight_of_an_answer_is_nearly_what_it_takes(value):
    held = weight(value)
    assert weight([value, value]) > 2 * held > 15_000


def test_which_answers_are_kept_shows_in_no_refusal():
    """A measurement whose counts were dropped is computed anew, also where every place for questions is taken."""

    async def asks(memory):
        desk, runs = Desk(4, 9, memory), []

        def work():
            runs.append(1)
            return table(1)

        def charge():
            return Charged("views", work)

        await desk.answered("ann", "key", charge)
        desk.name("name", "key", charge)
        held = threading.Event()
        waits = asyncio.ensure_future(desk.quoted("ben", held.wait))
        await asyncio.sleep(0)
        with pytest.raises(RefusedError):
            await desk.quoted("ben", list)
        found = await asyncio.gather(*(desk.again("name") for _ in range(3))), await desk.again("no name")
        held.set()
        await waits
        return found, len(runs)

    kept, dropped = asyncio.run(asks(10**6)), asyncio.run(asks(1))
    assert kept[0] == dropped[0] == ([table(1)] * 3, None) and (kept[1], dropped[1]) == (1, 2)


def test_which_answers_are_kept_shows_in_no_refusal_of_a_question_that_is_asked_again():
    """How large a measurement's histogram is follows from records, and it may drop an answer to another question."""

    async def asks(size):
        desk, held = Desk(8, 3, 1_000), threading.Event()
        counted = type("Counted", (), {"size": size})()
        for key, answer in (("old", [0]), ("mine", [1]), ("counts", counted), ("third", [3])):
            await desk.answered("ann", key, lambda answer=answer: Charged("views", lambda: answer))
        asked = [asyncio.ensure_future(desk.quoted("ann", held.wait)) for _ in "ab"]
        await asyncio.sleep(0)
        found = []
        for key in ("mine", "counts", "third", "old", "new"):
            try:
                found.append(await desk.answered("ann", key, lambda key=key: Charged("views", lambda: key)) is not None)
            except RefusedError as refused:
                found.append(refused.status)
        held.set()
        await asyncio.gather(*asked)
        return found

    assert [asyncio.run(asks(size)) for size in (10, 900, 5_000)] == [[True, True, True, 429, 429]] * 3


def test_only_so_many_names_are_known():
    async def asks():
        desk = Desk(4, 3, 10**6)
        for number in range(5):
            desk.name(number, number, lambda number=number: Charged("views", lambda: [number]))
        return [await desk.again(number) for number in range(5)]

    assert asyncio.run(asks()) == [None, None, [2], [3], [4]]


def test_a_server_that_keeps_nothing_answers_the_same_and_charges_once(tmp_path):
    plan = {"plan": [{"do": "table", "name": "views"}, {"do": "map", "of": 0,
            "function": {"is": "sql", "text": "page"}}], "epsilon": "0.1", "dry": False}  # fmt: skip
    query = {"query": "SELECT page, COUNT(*) AS c FROM views GROUP BY page", "keys": ["p1"], "epsilon": "0.1"}
    with serving(written(tmp_path, CONFIG + "\n[limits]\nmemory = 1\n", rows=40)) as site:
        token, seen, spent = site.token("ann", 1), [], []
        for _ in range(3):
            name = site.ask(token, "POST", "/api/measure", plan).body["measurement"]["name"]
            bins = {"bins": ["p1", "none"]}
            seen.append((name, *(site.ask(token, "POST", f"/api/measurements/{name}/observe", bins).raw for _ in "ab")))
            seen[-1] += (site.ask(token, "POST", "/api/sql", {**query, "dry": False}).raw,)
            spent.append(Ledger.existing(site.place / "ledger").spent())
        assert spent == [spent[0]] * 3 and seen == [seen[0]] * 3 and seen[0][1] == seen[0][2]
