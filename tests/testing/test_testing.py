"""wpinq.testing: exact answers on records given by hand, and a search for dataflows that move too far."""

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

import processes
import pytest
from algebra import BINARY, UNARY, UNITS, apply, source
from depth import deeper, often, thin
from hypothesis import given, settings

import wpinq
from wpinq.core.operators.filter import Filter
from wpinq.core.records.schema import Kind
from wpinq.errors import PlanError, SourceError
from wpinq.testing import check_stability, distance, evaluate, inputs, neighbours, protected
from wpinq.testing.case import FEW

PEOPLE = [
    wpinq.users("user", at_most=2),
    wpinq.users("user", at_most=3, per=("page", 1)),
    wpinq.users("user", shared=True),
    wpinq.users("user", at_most=2, period="1d", at="time"),
]


def people(unit, **more):
    types = {"user": str, "page": str, "time": "timestamp"}
    return wpinq.protect([], budget=1, columns=types, unit=unit, **more)


@deeper
@pytest.mark.parametrize("name", sorted(UNARY | BINARY | UNITS))
def test_no_operator_is_found_to_move_too_far(name):
    check_stability(apply(name, source("left", False), source("right", False)), examples=often(30))


@deeper
@pytest.mark.parametrize("unit", PEOPLE, ids=lambda unit: unit.text)
def test_people_move_no_further_than_their_bound(unit):
    check_stability(people(unit), examples=often(60))
    check_stability(people(unit).map("page"), examples=often(60))


@dataclass(frozen=True, eq=False)
class Doubled(Filter):
    """Says that it is 1-stable, and is 2-stable."""

    def define(self, inputs):
        return {record: 2 * weight for record, weight in super().define(inputs).items()}


@deeper
@thin(5)
@pytest.mark.parametrize("unit", [None, *PEOPLE], ids=lambda unit: "record" if unit is None else unit.text)
def test_an_operator_that_moves_too_far_is_found(unit):
    views = people(unit)
    views = views.map(", ".join(views.columns)).filter(lambda page: page != "b")
    check_stability(views, examples=often(60))
    node = views._node
    broken = views._then(Doubled(**{name: getattr(node, name) for name in node.__dataclass_fields__}))
    with pytest.raises(AssertionError, match="one unit more of 'records' moves the output by"):
        check_stability(broken, examples=often(60))


def test_a_function_that_draws_is_found_and_its_verdict_is_the_same_every_time():
    seen = Counter()

    def visit(page):
        seen[page] += 1
        return seen[page]

    said = []
    for _ in range(2):
        seen.clear()
        with pytest.raises(AssertionError) as found:
            check_stability(protected(page="text").map(visit, columns={"n": int}))
        said.append(str(found.value))
    assert said[0] == said[1]


def test_values_reach_what_a_filter_looks_for():
    rare = protected(page="text").filter(lambda page: page == "needle")
    node = rare._node
    broken = rare._then(Doubled(**{name: getattr(node, name) for name in node.__dataclass_fields__}))
    check_stability(broken)
    with pytest.raises(AssertionError):
        check_stability(broken, values={"page": ["needle", "straw"]})


@deeper
@pytest.mark.parametrize("unit", [None, *PEOPLE], ids=lambda unit: "record" if unit is None else unit.text)
def test_neighbours_differ_by_one_unit(unit):
    views = people(unit, name="views").join(protected(name="towns", user="text", town="text"), on="user")
    met = set()

    @settings(max_examples=often(60))
    @given(neighbours(views))
    def check(pair):
        place = ["views", "towns"].index(pair.data.name)
        for at, (without, with_one) in enumerate(zip(pair.without, pair.with_one, strict=True)):
            more = Counter(with_one) - Counter(without)
            assert not Counter(without) - Counter(with_one)
            assert bool(more) == (at == place)
            if at == place and (unit is None or place == 1):
                assert more.total() == 1
            elif at == place:
                assert len({record[0] for record in more}) == 1
                assert not {record[0] for record in more} & {record[0] for record in without}
                assert unit.period is None or len({record[2] for record in more}) == 1
        met.add(place)

    check()
    assert met == {0, 1}


@deeper
@pytest.mark.parametrize("kind", FEW, ids=lambda kind: kind.value)
def test_every_kind_has_values_that_a_column_holds_as_they_are(kind):
    views = wpinq.protect(
        [(one,) for one in FEW[kind]], budget=1, columns=("a",) if kind is Kind.ANY else {"a": kind.value}
    )
    kept = views._node.data.reader.frame["a"]
    assert kept.null_count() == FEW[kind].count(None) == 1
    assert len(kept) == kept.n_unique()
    check_stability(views.distinct(), examples=often(20))


@deeper
def test_inputs_are_one_for_each_source():
    one, two = protected(name="one", a="integer"), protected(name="two", a="integer", b="text")

    @settings(max_examples=often(10))
    @given(inputs(one.union(one).concat(two.map("a"))))
    def check(given):
        assert [len(set(map(len, records)) | {width}) for records, width in zip(given, (1, 2), strict=True)] == [1, 1]

    check()


def test_records_of_one_value_and_weights():
    pages = protected(page="text")
    assert evaluate(pages, ["ab", ("ab",), ["b"]]) == {("ab",): 2, ("b",): 1}
    assert evaluate(pages, {("a",): "1/2", "b": Fraction(2)}) == {("a",): Fraction(1, 2), ("b",): 2}
    assert distance({("a",): 2}, {("b",): Fraction(1, 2)}) == Fraction(5, 2)


def test_what_does_not_fit_is_refused():
    pages = protected(page="text")
    with pytest.raises(PlanError, match="reads 1 collections, and 2 inputs"):
        evaluate(pages, [], [])
    with pytest.raises(PlanError, match="has 2 values; the columns are page"):
        evaluate(pages, [("a", "b")])
    with pytest.raises(PlanError, match="takes a protected collection"):
        check_stability(lambda views: views)
    with pytest.raises(SourceError, match="no column"):
        protected()
    with pytest.raises(SourceError, match="no type"):
        protected(page="pages")


def test_what_is_given_is_measured_too():
    pages = protected(["a", "a", "b"], page="text")
    assert abs(pages.measure(10**5).observe("a") - 2) < 1


def test_without_hypothesis_everything_but_the_search_works():
    code = (
        "import sys; sys.modules['hypothesis'] = None; from wpinq.testing import *; p = protected(page='text')\n"
        "assert evaluate(p, ['a']) == {('a',): 1}\n"
        "try: check_stability(p)\n"
        "except Exception as error: print(error)"
    )
    assert "pip install 'wpinq[testing]'" in processes.printed("-c", code, fresh=True)
