"""A fuzzer of fingerprints: plans that answer differently on some data never have one fingerprint.

A plan is grown from a tape of numbers, each of which makes one choice: the source, the operator, a column, a literal,
a name, an option. A plan and plans that differ from it in one choice are grown, again and again; where a fingerprint is
met twice, the reference engine answers both on random data, and the answers must be the same.

    WPINQ_FUZZ_SECONDS=600 pytest tests/attacks/test_fuzz_fingerprints.py -s    longer, from a new seed; prints what
    WPINQ_FUZZ_SECONDS=600 WPINQ_FUZZ_SEED=7 pytest ...                         repeats it
"""

import datetime as dt
import itertools
import json
import math
import os
import random
import subprocess
import sys
import time
from collections import defaultdict
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest
from depth import deep, thin
from strategies import protected

from wpinq.collection import Collection
from wpinq.core.engines import reference
from wpinq.core.functions import expressions
from wpinq.core.functions.covering import covered_fields
from wpinq.core.operators.resolution import fit_noise
from wpinq.core.plan import node as plan
from wpinq.core.plan.dataset import DataSet
from wpinq.core.plan.node import Source, fingerprints, steps
from wpinq.core.records.schema import Kind
from wpinq.core.records.values import encode
from wpinq.errors import WpinqError

LENGTH = 40
COUNT = 500
PLANTED = 500
NAMES = ["a", "b", "n", "x", "index"]
LITERALS = [
    [1, True, 1.0, "1", Decimal(1), Decimal("1.0"), Fraction(1), (1,), ("1",), b"1"],
    [0, False, 0.0, -0.0, "", None, ()],
    [math.inf, -math.inf, math.nan],
    [2**53, 2**53 + 1, 2.0**53, 2**70],
    ["2020-01-01", dt.date(2020, 1, 1), dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 1, tzinfo=dt.UTC)],
    ["a", "A", b"a", ("a",), "a "],
    [[1], (1,), frozenset([1]), {1: 1}, {"1": 1}],
    [dt.timedelta(1), dt.timedelta(days=2), 86400],
]
SQL = [
    ["1", "1.0", "'1'", "TRUE", "2"],
    ["0", "-0.0", "NULL", "''", "FALSE"],
    ["1e999", "-(1e999)", "'inf'", "'-inf'", "'NaN'"],
    ["DATE '2020-01-01'", "'2020-01-01'", "TIMESTAMP '2020-01-01'"],
]
"""Literals in families whose members are easily taken for each other."""
COMPARED = ["==", "<", ">=", "!="]
THICK = [1, "1/2", [1, "1/2"], ["1/2", 1], 2]
VALUES = {
    "integer": [None, 0, 1, -1, 2, 2**53, 2**53 + 1],
    "number": [None, 0.0, 1.0, -1.0, 0.5, math.inf, -math.inf, math.nan],
    "text": [None, "", "1", "a", "2020-01-01", "inf"],
    "date": [None, dt.date(2020, 1, 1), dt.date(2020, 1, 2)],
    "value": [None, 0, 1, "1", "a", 0.5, (1,), dt.date(2020, 1, 1), b"1"],
}


def data_sets():
    """Sources that differ in one thing each: columns, kinds, ledger, name, version."""
    shapes = [{"a": "integer", "b": "number", "x": "text"}, {"a": "integer", "b": "number", "n": "text"},
              {"a": "value", "b": "number", "x": "text"}, {"a": "date", "b": "text"}]  # fmt: skip
    found = [protected(**shape)._node.data for shape in shapes]
    first = found[0]
    found += [protected(**shapes[0])._node.data for _ in range(2)]
    found += [replace(first, name="other"), replace(first, version="2"),
              replace(first, reading="no header")]  # fmt: skip
    return [Collection(Source(one)) for one in found]


class Tape:
    """Choices by the numbers of a tape; beyond its end the first."""

    def __init__(self, numbers):
        self.numbers, self.place = numbers, 0

    def pick(self, choices):
        self.place += 1
        number = self.numbers[self.place - 1] if self.place <= len(self.numbers) else 0
        return choices[number % len(choices)]

    def of(self, families):
        """A member of one of the families."""
        return self.pick(self.pick(families))


def python(text, literal):
    return eval(text, {"LITERAL": literal, "__name__": "fuzzed", "helper": helper(literal)})


def helper(literal):
    return lambda value: value == literal


def filtered(c, tape, base):
    name, literal, compare = tape.pick(sorted(c.columns)), tape.of(LITERALS), tape.pick(COMPARED)
    return c.filter(tape.pick([
        lambda: python(f"lambda {name}: {name} {compare} LITERAL", literal),
        lambda: python(f"lambda {name}: {name} {compare} LITERAL if {name} is not None else False", literal),
        lambda: python(f"lambda {name}: helper({name})", literal),
        lambda: polars(name, compare, literal),
        lambda: f'"{name}" {compare.replace("==", "=").replace("!=", "<>")} {tape.of(SQL)}',
    ])())  # fmt: skip


def polars(name, compare, literal):
    compared = {"==": "eq", "<": "lt", ">=": "ge", "!=": "ne"}[compare]
    return getattr(pl.col(name), compared)(pl.lit(literal))


def expressed(c, tape, base):
    numbers = [one.name for one in c._node.schema if one.kind in (Kind.INT, Kind.FLOAT)]
    name, literal, compare = tape.pick(sorted(numbers or c.columns)), tape.of(LITERALS[:4]), tape.pick(COMPARED)
    return c.filter(polars(name, compare, literal))


def mapped(c, tape, base):
    name, literal, new = tape.pick(sorted(c.columns)), tape.of(LITERALS), tape.pick(NAMES)
    other = tape.pick(sorted(c.columns))
    return tape.pick([
        lambda: c.map(python(f"lambda {name}: (LITERAL, {name})", literal), columns=[new, "k"]),
        lambda: c.map(python(f"lambda {name}: LITERAL if {name} else {name}", literal), columns=[new]),
        lambda: c.map(python(f"lambda {name}: [LITERAL][-1]", literal), columns=[new]),
        lambda: c.map([pl.when(polars(name, "==", literal)).then(1).otherwise(2).alias(new), pl.col(other)]),
        lambda: c.map([pl.col(name).alias(new), pl.lit(literal).alias("k")]),
        lambda: c.map(f'"{name}" AS "{new}", {tape.of(SQL)} AS k'),
        lambda: c.map([name, other] if name != other else name),
        lambda: c.map([pl.col(name).fill_null(literal).alias(new)]),
        lambda: c.map([pl.col(name).is_in([literal, tape.of(LITERALS)]).alias(new)]),
    ])()  # fmt: skip


def grouped(c, tape, base):
    name, new, whole = tape.pick(sorted(c.columns)), tape.pick(NAMES), tape.pick([False, True])
    literal = tape.of(LITERALS)
    return tape.pick([
        lambda: c.group_by(name, len, columns=[new], whole=whole),
        lambda: c.group_by(name, python("lambda group: len(group) == LITERAL", literal), columns=[new], whole=whole),
        lambda: c.group_by(python(f"lambda {name}: {name} == LITERAL", literal), len, columns=[new], whole=whole),
    ])()  # fmt: skip


def joined(c, tape, base):
    other, name = base(tape), tape.pick(sorted(c.columns))
    most, twin = tape.pick([None, 3, 8]), tape.pick(sorted(other.columns))
    return tape.pick([
        lambda: c.join(other, left=name, right=twin, at_most=most),
        lambda: c.semijoin(other, left=name, right=twin),
        lambda: c.antijoin(other, left=name, right=twin),
        lambda: c.limit(name, tape.pick([1, 2])),
    ])()  # fmt: skip


def added(c, tape, base):
    other = base(tape)
    return getattr(c, tape.pick(["concat", "subtract", "union", "intersect"]))(other)


def cut(c, tape, base):
    name = tape.pick(sorted(c.columns))
    parts = list({encode(one): one for one in (0, 1, "a", "1", None, 0.5)}.values())
    return tape.pick([
        lambda: c.shave(tape.pick(THICK), name=tape.pick(NAMES)),
        c.distinct,
        lambda: c.flat_map(python(f"lambda {name}: [{name}, LITERAL]", tape.of(LITERALS)),
                           columns=[tape.pick(NAMES)], at_most=tape.pick([2, 3, 1])),
        lambda: tape.pick(list(c.partition(name, [one for one in parts if fits(c, name, one)]).values())),
        lambda: Collection(replace(c.window(tape.pick([1, 2]), at=name)._node, number=tape.pick([0, 1, -1]))),
        lambda: c.shave("1/2", name=tape.pick(NAMES)).shave("1/2", name=tape.pick(NAMES)),
    ])()  # fmt: skip


def sliced(c, tape, base):
    first, second, name = tape.pick(NAMES), tape.pick(NAMES), tape.pick(NAMES)
    slices = c.shave("1/2", name=first).shave("1/2", name=second)
    return slices.map(name) if name in slices.columns else slices


def fits(c, name, value):
    kinds = {Kind.INT: (int,), Kind.FLOAT: (int, float), Kind.TEXT: (str,), Kind.ANY: (object,)}
    return value is None or isinstance(value, kinds.get(c._node.schema[name].kind, ()))


MENU = [filtered, mapped, cut, grouped, joined, added, cut, filtered, mapped, expressed, sliced]


def grow(numbers, bases, menu=MENU):
    """The plan of a tape, and how many of its numbers it took; None where the choices make no plan."""
    tape = Tape(numbers)

    def base(tape):
        return tape.pick(bases)

    collection = base(tape)
    for _ in range(tape.pick([1, 2, 2, 3])):
        try:
            collection = tape.pick(menu)(collection, tape, base)
        except (WpinqError, TypeError, ValueError, OverflowError, SyntaxError, pl.exceptions.PolarsError):
            return None, tape.place
    return collection._node, tape.place


def answers(root, seed, order):
    """What a plan answers on data that depend on the seed and the data set alone."""
    found = []
    for number in range(4):
        given = {}
        for source in (one for one in steps(root) if isinstance(one, Source)):
            draw = random.Random(f"{seed} {number} {order[source.data]}")
            kinds = [column.kind.value for column in source.schema]
            rows = [tuple(draw.choice(VALUES[kind]) for kind in kinds) for _ in range(draw.randrange(7))]
            given[source] = reference.weigh(rows)
        weights = defaultdict(Fraction)
        for record, weight in reference.run(fit_noise(root), given).items():
            weights[tuple(map(encode, record))] += weight
        found.append({record: weight for record, weight in weights.items() if weight})
    return found


def tapes(draw, bases, menu=MENU):
    """Tapes of plans, each followed by some that differ in one number that the plan took, or have two exchanged."""
    while True:
        tape = [draw.randrange(2**30) for _ in range(LENGTH)]
        root, taken = grow(tape, bases, menu)
        yield tape
        for number in range(8 if root else 0):
            changed, place = list(tape), draw.randrange(min(taken, LENGTH))
            changed[place] = draw.randrange(2**30) if number % 2 else tape[other := place - draw.choice([1, 2])]
            if not number % 2:
                changed[other] = tape[place]
            yield changed


def fuzz(seed, count=None, seconds=math.inf, menu=MENU, most=math.inf):
    """Grow plans from so many tapes, or for so long; count fingerprints, tell those shared falsely, so many at most."""
    draw, bases = random.Random(seed), data_sets()
    order = {one._node.data: place for place, one in enumerate(bases)}
    end, met, again, wrong = time.monotonic() + seconds, {}, 0, []
    for tape in itertools.islice(tapes(draw, bases, menu), count):
        if time.monotonic() > end or len(wrong) >= most:
            break
        root, _ = grow(tape, bases, menu)
        digest = None if root is None else fingerprints(root)[root]
        if digest is None:
            continue
        first = met.setdefault(digest, root)
        if first is not root:
            again += 1
            if answers(first, again, order) != answers(root, again, order):
                wrong.append((first.title, root.title, tape))
    return met, again, wrong


def told(met, again, wrong):
    return f"{len(met)} fingerprints, {again} met again, {len(wrong)} wrong: {wrong[:3]}"


@deep
def test_plans_of_one_fingerprint_answer_alike():
    seconds = os.environ.get("WPINQ_FUZZ_SECONDS")
    if seconds is None:
        met, again, wrong = fuzz(1, count=COUNT)
        assert len(met) > COUNT / 5
        assert again > COUNT / 20
    else:
        seed = int(os.environ.get("WPINQ_FUZZ_SEED") or random.randrange(10**6))
        print(f"\nWPINQ_FUZZ_SECONDS={seconds} WPINQ_FUZZ_SEED={seed} pytest {__file__} -s")
        met, again, wrong = fuzz(seed, seconds=float(seconds))
        print(told(met, again, wrong))
    assert not wrong, told(met, again, wrong)


def forget_names(patch):
    """As operators once told themselves: by their options, and not by the names that they give."""

    def told(node):
        fields = covered_fields(node)
        named = {"name", "function", "predicate"}
        return {name: field for name, field in fields.items() if name not in named} | {
            name: fields[name].fingerprint for name in ("function", "predicate") if name in fields}  # fmt: skip

    real = plan.covered
    patch.setattr(plan.Node, "meaning", property(told))
    patch.setattr(plan, "covered", lambda what, known, **how: real(
        (*what[:3], what[3].columns if what[0] == "Source" else None, what[4]), known, **how))  # fmt: skip


def forget_infinity(patch):
    """Polars' JSON has one word for all numbers that are not finite."""
    patch.setattr(expressions, "_meaning", lambda part: part.expr.meta.serialize(format="json").encode())


def forget_ledgers(patch):
    patch.setattr(DataSet, "book", property(lambda data: ""))


def forget_versions(patch):
    real = DataSet.covered.fget
    patch.setattr(DataSet, "covered", property(lambda data: (*real(data)[:2], "", *real(data)[3:])))


@thin(4)
@pytest.mark.parametrize(
    ("forget", "menu"),
    [
        (forget_names, [sliced]),
        (forget_infinity, [expressed]),
        (forget_ledgers, [expressed]),
        (forget_versions, [mapped, expressed]),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
@pytest.mark.filterwarnings("ignore")
def test_the_fuzzer_finds_what_is_forgotten(forget, menu, monkeypatch):
    """Each was a fault once, or is like one; planted again, it is found."""
    forget(monkeypatch)
    met, again, wrong = fuzz(1, count=PLANTED, menu=menu, most=1)
    print(told(met, again, wrong))
    assert wrong


SCRIPT = """
import importlib, json, os, sys
for name in sys.argv[2:]:
    importlib.import_module(name)
import random, polars as pl, wpinq
sys.path.insert(0, sys.argv[1])
import test_fuzz_fingerprints as fuzzer
from wpinq.core.plan.node import fingerprints
views = wpinq.protect(os.environ["VIEWS"], budget=1, columns={"a": int, "b": float, "x": str}, version="1")
draw, found = random.Random(3), []
for tape in (next(made) for made in [fuzzer.tapes(draw, [views])] for _ in range(150)):
    root, _ = fuzzer.grow(tape, [views])
    digest = root and fingerprints(root)[root]
    found.append(digest.hex() if digest else None if root else "")
WORDS = {"x", "y", "z", "w"}
for one in (views.map(lambda a: a in WORDS if a else 0), views.window(2, at="a"), views.partition("x", ["p"])["p"]):
    found.append(fingerprints(one._node)[one._node].hex())
print(json.dumps(found))
"""


@deep
def test_a_script_has_the_same_fingerprints_in_any_process(tmp_path):
    """Whatever the seed of hashes, the directory that it runs in, the zone, and what was imported before."""
    (tmp_path / "views.csv").write_text("a,b,x\n1,1.0,p\n")
    found = []
    ways = [("1", tmp_path, "UTC", []), ("77", Path.cwd(), "Asia/Tokyo", ["calendar", "wpinq.query", "numpy"])]
    for seed, place, zone, imported in ways:
        environment = os.environ | {"PYTHONHASHSEED": seed, "TZ": zone, "VIEWS": str(tmp_path / "views.csv"),
                                    "PYTHONPATH": os.pathsep.join(sys.path)}  # fmt: skip
        command = [sys.executable, "-c", SCRIPT, str(Path(__file__).parent), *imported]
        done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=True)
        found.append(json.loads(done.stdout.splitlines()[-1]))
    assert found[0] == found[1]
    assert len({one for one in found[0] if one}) > 40
