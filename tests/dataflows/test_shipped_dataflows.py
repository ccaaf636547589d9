"""The dataflows that come with wpinq: what they mean, against counting in plain Python, and what they cost."""

from __future__ import annotations

import importlib
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wpinq
from wpinq.core.engines import reference
from wpinq.core.plan.node import Source, steps

NAMES = ("page_views", "degree_cdf", "degree_sequence", "degrees")
RECORDS = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["x", "y", "z", "w"])), max_size=30)


def measured(name: str, records: list[tuple[object, ...]], columns: dict[str, type]) -> dict[str, wpinq.Measurement]:
    return importlib.import_module(f"dataflows.{name}").dataflow(wpinq.protect(records, budget=1, columns=columns))


def exact(measurement: wpinq.Measurement, records: list[tuple[object, ...]]) -> dict[object, int]:
    """The true histogram, by the reference engine."""
    source = next(node for node in steps(measurement.node) if isinstance(node, Source))
    found = reference.run(measurement.node, {source: reference.weigh(records)})
    return {bin_[0]: int(weight) for bin_, weight in found.items()}


def counted(records: list[tuple[object, ...]], place: int) -> dict[str, dict[object, int]]:
    views = Counter(record[place] for record in records)
    most_first = sorted(views.values(), reverse=True)
    return {
        "page_views": dict(views),
        "degree_cdf": {k: sum(one >= k for one in most_first) for k in range(1, max(most_first, default=0) + 1)},
        "degree_sequence": dict(enumerate(most_first, 1)),
    }


@pytest.mark.parametrize("name", NAMES)
@given(records=RECORDS)
def test_meaning(name, records):
    expected = counted(records, 1)
    for key, measurement in measured(name, records, {"user": str, "page": str}).items():
        assert exact(measurement, records) == expected[key]


@pytest.mark.parametrize("columns", [{"page": str}, {"day": int, "page": str, "user": str}], ids=len)
@pytest.mark.parametrize("name", NAMES)
def test_any_columns_that_include_page(name, columns):
    records = [tuple({"day": 3, "page": page, "user": "ann"}[column] for column in columns) for page in "xxy"]
    expected = counted(records, list(columns).index("page"))
    for key, measurement in measured(name, records, columns).items():
        assert exact(measurement, records) == expected[key]
        assert measurement.observe_many(list(expected[key])).shape == (len(expected[key]),)


def test_costs_are_those_of_the_post():
    views = wpinq.protect([("ann", "home")], budget="0.2")
    all_three = importlib.import_module("dataflows.degrees").dataflow(views)
    assert {key: (one.epsilon, one.scale) for key, one in all_three.items()} == {
        "page_views": (Fraction(1, 20), 20),
        "degree_cdf": (Fraction(1, 10), 10),
        "degree_sequence": (Fraction(1, 20), 20),
    }
    ledger = all_three["degree_cdf"].key_owner.ledger
    assert ledger.remaining() == 0
    views = wpinq.protect([("ann", "home")], budget="0.2")
    alone = [importlib.import_module(f"dataflows.{name}").dataflow(views)[name] for name in NAMES[:3]]
    assert [one.scale for one in alone] == [20, 10, 20]
    assert alone[0].key_owner.ledger.remaining() == 0
