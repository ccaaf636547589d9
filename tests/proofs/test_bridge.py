"""The definitions that the proofs are about are the reference engine's, and what runs in columns is the same.

Coq makes a program of its definitions (`Extracted.v`, `bridge.ml`). It and the reference engine are given the same
random collections, of signed and fractional weights; some are given to the column kernels as well. `WPINQ_BRIDGE_CASES`
says how many; `.ci/run` takes 100,000. `test_bridge_formulas.py` compares what is no operator.
"""

import os
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import islice

import coq
import pytest
from depth import deep
from strategies import Driver, Fine, expected, leaves, protected, same

import wpinq
from wpinq.collection import Collection
from wpinq.core.engines import reference
from wpinq.core.functions.isolate import one_thread
from wpinq.core.ledger.rows.secret import Secret
from wpinq.core.operators.contribution.sample import _numbered
from wpinq.core.operators.contribution.share import RESOLUTION
from wpinq.core.operators.resolution import record_ids, record_key
from wpinq.core.plan.node import steps
from wpinq.core.records.values import encode

CASES = int(os.environ.get("WPINQ_BRIDGE_CASES", "1500"))
IN_COLUMNS = 4
VALUES = range(-1, 4)
RECORDS = [(a, b) for a in VALUES for b in VALUES]
NUMBER = {record: number for number, record in enumerate(RECORDS)}
FINE = 4
MOST = 20
"""The largest whole weight."""


@dataclass
class Case:
    """An operator in both: the plan, and the name, integers and tables of its definition in Coq.

    `finer` is how much finer the definition's weights are than the source's, in `units` of 1, and `out` how much finer
    its answers are. A last step that is looked at `alone` is given the collections itself. Columns of people's records
    are given none of weight below 0, which a source of people does not have.
    """

    name: str
    plan: object
    numbers: list[int] = field(default_factory=list)
    tables: list[list[list[int]]] = field(default_factory=list)
    finer: int = 1
    out: int = 1
    record: Callable[[list[int]], object] = lambda found: RECORDS[found[0]]
    arity: int = 1
    alone: bool = False
    units: int = FINE
    people: bool = False


class Whole(Fine):
    """A source of whole weights of both signs."""

    @property
    def resolution(self):
        return 1


def people(**bounds):
    """People's records, bounded: `a` names the person."""
    columns, unit = {"a": int, "b": int}, wpinq.users("a", **bounds)
    secret = Secret(bytes(range(32)))
    return wpinq.protect([], unit=unit, columns=columns, secret=secret, budget=1, name="people", version="1")


def sampled(most, *per):
    """A sample of people's records, with the places of all copies in the order of the keyed hash."""
    plan = people(at_most=most, per=("b", *per) if per else None)
    node, copies = plan._node, [(*record, n) for record in RECORDS for n in range(1, MOST + 1)]
    ids = record_ids(copies, _numbered(node.schema), node.data.sampling_key).tolist()
    place = {copy: number for number, (_, copy) in enumerate(sorted(zip(ids, copies, strict=True)))}
    ranked = table(lambda a, b: [place[a, b, n] for n in range(1, MOST + 1)])
    tables = [table(lambda a, b: [a]), ranked, table(lambda a, b: [b])]
    return Case("sample", plan, [most, *per], tables, units=1, people=True)


def table(function):
    return [function(a, b) for a, b in RECORDS]


def ranks(collection, kind):
    """The places of all records in the order of the keyed hash of a step."""
    (node,) = [node for node in steps(collection._node) if type(node).__name__ == kind]
    ids = record_ids(RECORDS, node.inputs[0].schema.expanded(), record_key(node)).tolist()
    order = sorted(range(len(RECORDS)), key=ids.__getitem__)
    return [[order.index(number)] for number in range(len(RECORDS))]


def cases():
    fine, other = (protected(name=name, fine=True, a="integer", b="integer") for name in ("left", "right"))
    first, second = table(lambda a, b: [a]), table(lambda a, b: [b])
    halve = table(lambda a, b: [NUMBER[(a // 2, b)]])
    pairs = {"a": int, "b": int}
    outputs = table(lambda a, b: [NUMBER[(a, i % 3)] for i in range(b + 1)])
    limited, semi = fine.limit("a", 2), fine.semijoin(other, left="a", right="b")
    anti = fine.antijoin(other, left="b", right="b")
    yield Case("map", fine.map(lambda a, b: (a // 2, b), columns=pairs), tables=[halve])
    dropped = table(lambda a, b: [NUMBER[(6 // b % 3, a)]] if b else [])
    yield Case("map", fine.map(lambda a, b: (6 // b % 3, a), columns=pairs), tables=[dropped])
    yield Case("filter", fine.filter(lambda a, b: a < b), tables=[table(lambda a, b: [1] * (a < b))])
    yield Case("filter", fine.partition("a", [0, 1])[1], tables=[table(lambda a, b: [1] * (a == 1))])
    made = fine.flat_map(lambda a, b: [(a, i % 3) for i in range(b + 1)], columns=pairs)
    yield Case("flat_map", made, [720720], [outputs], out=720720)
    seven = table(lambda a, b: [NUMBER[(a, i % 5 - 1)] for i in range(7)])
    made = fine.flat_map(lambda a, b: [(a, i % 5 - 1) for i in range(7)], columns=pairs, at_most=4)
    yield Case("flat_map", made, [12], [seven], out=12)
    whole = fine.flat_map(lambda a, b: [(a, i % 3) for i in range(b + 1)], columns=pairs, at_most=2, whole=True)
    yield Case("first", whole, [2], [outputs])
    yield Case("distinct", fine.distinct(), [FINE])
    yield Case("distinct", fine.distinct("5/3"), [20], finer=3)
    sliced = {"record": lambda found: (*RECORDS[found[0]], found[1])}
    yield Case("shave", fine.shave(), tables=[table(lambda a, b: [FINE])], **sliced)
    cuts = table(lambda a, b: [12, 4, 24])
    yield Case("shave", fine.shave([1, "1/3", 2]), tables=[cuts], finer=3, **sliced)
    cuts = table(lambda a, b: [2 * a, 6] if a > 0 else [])
    yield Case("shave", fine.shave(lambda a: (Fraction(a, 2), Fraction(3, 2)), step="1/2"), tables=[cuts], **sliced)
    yield Case("sum", fine.concat(other), [1], arity=2)
    yield Case("sum", fine.subtract(other), [-1], arity=2)
    yield Case("union", fine.union(other), arity=2)
    yield Case("intersect", fine.intersect(other), arity=2)
    yield Case("limit", limited, [2 * FINE], [first, ranks(limited, "Fill")])
    yield Case("semijoin", semi, [], [first, ranks(semi, "Fill"), second], arity=2)
    yield Case("antijoin", anti, [], [second, ranks(anti, "Fill"), second], arity=2)
    group = {"record": lambda found: (found[0], tuple(sorted((RECORDS[one] for one in found[1:]), key=encode)))}
    yield Case("group_by", fine.group_by("a"), tables=[first], out=2, **group)
    signed = Collection(Whole(protected(name="left", a="integer", b="integer")._node.data))
    yield Case("whole", signed.group_by("a", whole=True), tables=[first], units=1, **group)
    yield sampled(3)
    yield sampled(5, 2)
    yield Case("share", people(shared=True), [RESOLUTION], [first], out=RESOLUTION, units=1, people=True)
    pair = {"record": lambda found: (*RECORDS[found[0]], RECORDS[found[1]][0])}
    rows = fine.limit("a", 2).join_rows(other.limit("b"), left="a", right="b")
    yield Case("join_rows", rows, [], [first, second], out=FINE, arity=2, alone=True, **pair)
    left = fine.limit("a", 2).join_rows(other.limit("b"), left="a", right="b", how="left")
    both = {"record": lambda found: (*RECORDS[found[0]], *(RECORDS[found[1]] if found[1:] else (None, None)))}
    yield Case("left_rows", left, [FINE], [first, second], out=FINE, arity=2, alone=True, **both)
    for joined in (fine.join(other, left="a", right="b"), fine.join(other, left="a", right="b", at_most=3)):
        node = joined._node
        assert 0 <= node.scale <= node.rule.cut  # what the theorem takes for granted
        numbers = [node.scale.bit_length() - 1, *divmod(node.rule.cut, 2**40)]
        yield Case("join", joined, numbers, [first, second], out=node.scale**2, arity=2, **pair)


def drawn(draw, units):
    """A collection: records and weights in units of 1/4 or of 1, small and large, of both signs."""
    some = draw.sample(RECORDS, draw.choice([0, 1, 2, 3, 5, 8, 12]))
    weights = (draw.choice([draw.randint(-12, 12), draw.randint(1, 4), 4, 4 * draw.randint(-MOST, MOST)]) for _ in some)
    return {record: weight * units // FINE for record, weight in zip(some, weights, strict=True)}


def line(case, given):
    tables = "/".join(",".join(" ".join(map(str, row)) for row in rows) for rows in case.tables)
    units = [" ".join(f"{NUMBER[record]}:{weight * case.finer}" for record, weight in one.items()) for one in given]
    return ";".join([case.name, " ".join(map(str, case.numbers)), tables, *units, *[""] * (2 - len(units))])


def read(case, answer):
    """An answer of the program as the reference engine gives it."""
    out = {}
    for found, weight in answer:
        record = case.record([int(part) for part in found.split(".")])
        out[record] = out.get(record, 0) + int(weight, 2)
    units = case.units * case.finer * case.out
    return {record: Fraction(weight, units) for record, weight in out.items() if weight}


def evaluated(case, inputs):
    """What the reference engine answers."""
    if case.alone:
        given = [{record: weight for record, weight in one.items() if weight} for one in inputs]
        return {record: weight for record, weight in case.plan._node.define(*given).items() if weight}
    return reference.run(case.plan._node, dict(zip(leaves(case.plan), inputs, strict=True)))


def fractions(case, given):
    return [{record: Fraction(weight, case.units) for record, weight in one.items()} for one in given]


def same_in_columns(case, inputs):
    if case.people:
        inputs = [{record: weight for record, weight in one.items() if weight > 0} for one in inputs]
    driver = Driver(case.plan)
    driver.feed(*inputs)
    assert same(driver.histogram, case.plan._node, expected(case.plan, *inputs)), (case.plan, inputs)


@deep
@pytest.mark.slow
def test_what_is_proved_is_what_runs(program):
    every, draw = list(cases()), random.Random(21)
    each = CASES // len(every)
    tried = [(case, [drawn(draw, case.units) for _ in range(case.arity)]) for case in every for _ in range(each)]
    assert len(tried) > CASES - len(every)
    answers = coq.answers(program, [line(*one) for one in tried])
    for first in range(0, len(tried), each):
        some = [(case, fractions(case, given)) for case, given in tried[first : first + each]]
        with one_thread():  # one for the functions of all: to start one took a third of the time of most
            right = [evaluated(*one) for one in some]
        for turn, ((case, inputs), wanted, answer) in enumerate(zip(some, right, islice(answers, each), strict=True)):
            assert read(case, answer) == wanted, (case.plan, inputs)
            if turn < IN_COLUMNS:
                same_in_columns(case, inputs)
    assert next(answers, None) is None, "each answer is that of a case"


@deep
@pytest.mark.slow
def test_another_definition_is_found(program):
    distinct = next(case for case in cases() if case.name == "distinct")
    (answer,) = coq.answers(program, [line(replace(distinct, numbers=[FINE + 1]), [{RECORDS[0]: 9}])])
    assert read(distinct, answer) == {RECORDS[0]: Fraction(5, 4)} != {RECORDS[0]: Fraction(1)}
