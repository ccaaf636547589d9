"""Records in memory: mappings are read by their keys, and what is no pair is refused where no columns are declared."""

import pytest

import wpinq
from wpinq.sources import open_source


@pytest.mark.parametrize(
    ("records", "what"),
    [
        ([{"a": 1}, {"a": 2}], "the first is a mapping"),
        ([(1, 2, 3)], "has 3 values"),
        ([["a"]], "has 1 values"),
        (["a.parquet", "b.parquet"], "by a pattern"),
        (range(3), "no tuple"),
        (iter([{"a": 1}]), "the first is a mapping"),
    ],
)
def test_without_columns_the_first_item_declares_what_records_are(records, what):
    with pytest.raises(wpinq.SourceError, match="columns=") as caught:
        wpinq.protect(records, budget=1)
    assert what in str(caught.value)


def test_with_columns_the_shape_of_no_item_decides_about_another():
    odd = [{"b": 2, "a": 1, "c": 9}, (3, 4), (1, 2, 3), "x", {"a": 5}, {}, None]
    expected = [(1, 2), (3, 4), (5, None), (None, None)]
    for order in (odd, odd[::-1]):
        (frame,) = open_source(order, columns={"a": int, "b": int}).batches(["a", "b"])
        assert sorted(frame.rows(), key=repr) == sorted(expected, key=repr)
    assert wpinq.protect([{"a": 1}, {"a": 2}], budget=1000, columns=("a",)).count(epsilon=100).value == 2


def test_without_columns_only_the_first_item_is_looked_at():
    (frame,) = open_source([("ann", "home"), (1, 2, 3), {"user": "bob"}]).batches(["user", "page"])
    assert frame.height == 2
    assert open_source([]).schema.names == ("user", "page")


def test_a_live_source_takes_mappings():
    live = wpinq.live({"user": "text", "n": int}, budget=1000)
    users = live.map(lambda user: user).measure(60)
    live.send([{"user": "ann", "n": 1}, {"n": 2}, ("bob", 3)])
    live.advance()
    assert users.observe_many(["ann", "bob", None]).tolist() == [1, 1, 1]
    live.close()
