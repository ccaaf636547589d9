"""Degree distributions of a hierarchy: what they cost, that they agree, and how far they are from the truth."""

import numpy as np
import polars as pl
import pytest

import wpinq
from wpinq.errors import BinError, BudgetError, PlanError
from wpinq.postprocess.hierarchy import imposed

COLUMNS = {"country": str, "region": str, "page": str}
NODES = [("nl", "n"), ("nl", "s"), ("be", "n"), ("be", "w")]


def table(views=3_000, pages=200, seed=1):
    """Pages of four regions, some much viewed; and a page that lies in no declared region."""
    pages = np.random.default_rng(seed).zipf(1.6, views) % pages
    rows = [(*NODES[page % 4], f"p{page}") for page in pages]
    return pl.DataFrame([*rows, ("nl", "x", "elsewhere")], schema=list(COLUMNS), orient="row")


def protected(frame, budget=100):
    return wpinq.protect(frame, budget=budget, columns=COLUMNS, version="1", secret=wpinq.Secret(bytes(32)))


def degrees(frame, **where):
    for name, value in where.items():
        frame = frame.filter(pl.col(name) == value)
    return sorted(frame.group_by(*COLUMNS).len()["len"].to_list(), reverse=True)


def test_without_noise_every_node_is_exact():
    frame = table()
    found = wpinq.degrees.release(protected(frame), epsilon=90, by=("country", "region"), nodes=NODES)
    inside = frame.filter(pl.col("region") != "x")
    assert len(found) == 7
    assert found[()].sequence.tolist() == degrees(inside)
    for country in ("nl", "be"):
        assert found[country].sequence.tolist() == degrees(inside, country=country)
    for country, region in NODES:
        assert found[country, region].sequence.tolist() == degrees(inside, country=country, region=region)


def test_children_add_up_to_their_parents_whatever_the_noise():
    found = wpinq.degrees.release(protected(table()), epsilon=1, by=("country", "region"), nodes=NODES)
    for node in ((), ("nl",), ("be",)):
        children = [found[one].sequence for one in found if len(one) == len(node) + 1 and one[: len(node)] == node]
        assert sorted(np.concatenate(children), reverse=True) == found[node].sequence.tolist()


def test_it_costs_epsilon_in_all_however_many_nodes():
    views = protected(table(), budget=1)
    wpinq.degrees.release(views, epsilon=1, by=("country", "region"), nodes=NODES)
    assert views.left == 0
    wpinq.degrees.release(views, epsilon=1, by=("country", "region"), nodes=NODES)  # the same question is free
    with pytest.raises(BudgetError):
        wpinq.degrees.release(views, epsilon=1, by="country", nodes=["nl"])


def test_the_root_is_as_a_release_of_its_share():
    """Its noise is that of epsilon divided by the number of levels, and nothing of the children moves it."""
    found = wpinq.degrees.release(protected(table()), epsilon=3, by=("country", "region"), nodes=NODES)
    assert found[()].scales[0] == 1
    assert found["nl", "n"].scales[0] == 1


def test_a_number_for_a_level_and_a_frame_of_nodes():
    frame = pl.DataFrame({"year": [2024, 2024, 2025], "page": ["a", "a", "b"]})
    views = wpinq.protect(frame, budget=90, version="1")
    found = wpinq.degrees.release(views, epsilon=80, by=["year"], nodes=pl.DataFrame({"year": [2024, 2025, 2026]}))
    assert [found[year].records for year in (2024, 2025, 2026)] == [2, 1, 0]


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"by": "country", "nodes": None}, PlanError, "give nodes="),
        ({"by": "town", "nodes": ["x"]}, PlanError, "names columns"),
        ({"by": list(COLUMNS), "nodes": [("a", "b", "c")]}, PlanError, "names what is counted"),
        ({"by": ("country", "region"), "nodes": ["nl"]}, BinError, "tuple of 2"),
        ({"by": "country", "nodes": ["nl"], "split": 0.5}, PlanError, "leave out split"),
    ],
)
def test_what_cannot_be_is_refused_before_the_charge(given, error, said):
    views = protected(table(9))
    with pytest.raises(error, match=said):
        wpinq.degrees.release(views, epsilon=1, **given)
    assert views.left == 100


def test_items_are_shared_out_by_what_each_child_lacks():
    parent = np.array([9, 5, 5, 2, 1, 1])
    found = imposed(parent, [np.array([7]), np.array([6, 3])], [1.2, 4.6])
    assert [one.tolist() for one in found] == [[9], [5, 5, 2, 1, 1]]
    assert [one.tolist() for one in imposed(parent[:1], [np.array([7]), np.array([6])], [1, 1])] == [[9], []]
    assert [one.tolist() for one in imposed(parent[:0], [np.array([7])], [1])] == [[]]
    assert [one.tolist() for one in imposed(parent, [np.zeros(0, int)], [0])] == [parent.tolist()]
