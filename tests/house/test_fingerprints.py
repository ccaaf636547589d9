"""Every field of every step changes its fingerprint, or only words its title: a new operator cannot forget one."""

import ast
import dataclasses
import importlib
import inspect
import pkgutil
import textwrap
from dataclasses import fields, replace
from fractions import Fraction

import algebra
import numpy as np
import polars as pl
import pytest
from strategies import protected

import wpinq
from wpinq.aggregates.buckets import Edges
from wpinq.aggregates.clipping_loss import Dropped
from wpinq.aggregates.lengths import Lengths
from wpinq.aggregates.moments import Moments
from wpinq.aggregates.scale import Cells, FineCells, Scale
from wpinq.aggregates.scoring import Scores
from wpinq.core.functions.bind import bind, bind_many
from wpinq.core.functions.function import Function
from wpinq.core.functions.rows import KEY, Rows, rows
from wpinq.core.ledger import Ledger
from wpinq.core.operators.contribution.first import First
from wpinq.core.operators.group_columns import GroupColumn, group_columns
from wpinq.core.operators.look_up import LookUp
from wpinq.core.operators.periods import Periods
from wpinq.core.operators.resolution import Align, Coarse
from wpinq.core.operators.shave_by import Thicknesses
from wpinq.core.operators.window import Window
from wpinq.core.plan.dataset import DataSet
from wpinq.core.plan.node import Node, Source, fingerprints, steps
from wpinq.core.plan.unit import Unit
from wpinq.core.records.fields import SHOWN
from wpinq.core.records.schema import Column, Kind, Schema
from wpinq.core.runs.key_recovery import Tap
from wpinq.errors import WpinqError
from wpinq.sources.tables.tuples import TupleReader

ROWS = [("ann", "home", 1), ("bob", "news", 2)]
COLUMNS = {"user": str, "page": str, "n": int}


def views(**how):
    return wpinq.protect(ROWS, budget=1, columns=COLUMNS, **how)


def live_slice(**how):
    source = wpinq.live(COLUMNS, budget=1, unit=wpinq.users("user", at_most=2), **how)
    asked = source.window(2, at="n").measure("0.1")
    source.send(ROWS)
    source.advance(until=8)
    return asked.at(1).node


TOWNS = pl.DataFrame({KEY: ["ann", "bob"], "town": ["Rome", "Oslo"]})


def towns(key, table=TOWNS, outer=False, name="town"):
    table = table.rename({"town": name})
    return rows(key, table, Schema((Column(name, Kind.TEXT),)), outer=outer, note="towns")


def looked_up(views):
    node = views._node
    return LookUp(node, towns(node.schema["user"]), None, ("user",), node.schema.names)


def scored(schema):
    """The columns of a record and a candidate."""
    return Schema((*schema.expanded(), Column("candidate", Kind.INT)))


def samples():
    """A plan for each kind of step."""
    c, people = views(), views(unit=wpinq.users("user", at_most=2, per=("page", 1)))
    source = c._node
    scale = Scale("n", Fraction(1), Fraction(1, 2), 0, 5)
    return [
        c.map(lambda user, n: (user, n + 1)), c.map("page"), c.filter(lambda n: n > 1), c.shave(), c.distinct(2),
        c.shave(lambda n: n or 1, step=2),
        c.flat_map(lambda page: [page, "x"]), c.flat_map(lambda page: [page, "x"], at_most=2, whole=True),
        c.concat(views()), c.union(views()), c.group_by("user", len),
        c.group_by("user", lambda group: len(group) + 1),
        c._then(group_columns(source, ["user"], [GroupColumn("a", "Sum", ("n",), False)])),
        c.join(c, on="user", at_most=3),
        people.join_rows(people, on="user"), people.join_rows(people, on="user", how="left"), c.window(2, at="n"),
        c.semijoin(c, on="user"), c.limit("user", 2), c.partition("page", ["home", "news"])["home"],
        people, views(unit=wpinq.users("user", shared=True)), views(unit=wpinq.users("user")),
        views(weight="n", max_weight=3),
        Moments(source, ("user",), scale, (0, 1), "mean"), Cells(source, ("user",), scale, "median"),
        FineCells(source, ("user",), scale, "median"),
        Cells(source, ("user",), Edges("n", (None, Fraction(1), Fraction(5, 2)), True), "histogram"),
        Align(source, Schema.of(a=Kind.ANY, b=Kind.TEXT, c=Kind.INT), 2), Coarse(source), First(people._node.source),
        Scores(source, bind("n - candidate", scored(source.schema), "test"), (1, 2), Fraction(3)),
        Lengths(people._node.source, (1, 2, 3)), Dropped(people._node.source, 9),
        Tap(source, b"key", np.zeros((0, 2), np.uint64)), live_slice(),
        live_slice(where="page = 'x'"), views(derive={"more": "n + 1"}),
        views(derive={"more": "n + 1"}, unit=wpinq.users("user", at_most=2)),
        looked_up(c),
    ]  # fmt: skip


def nodes():
    """A step of each kind, of the plans of tests/algebra.py where `samples` has none."""
    pairs = algebra.source("left", fine=False), algebra.source("right", fine=False)
    plans = [step(*pairs[:arity]) for arity, step in (algebra.STEPS | algebra.UNITS).values()]
    plans = [getattr(one, "_node", one) for one in [*plans, *samples()]]
    return {type(node): node for plan in plans for node in steps(plan)}


NODES = nodes()


def load():
    """Every module of the package, so that every step is known."""
    for module in pkgutil.walk_packages(wpinq.__path__, "wpinq."):
        # built, for builds, or over libraries of extras; and no step is of the engine that some Pythons have not
        apart = ("wpinq.__main__", "wpinq.core.kernels.", "wpinq.tools.", "wpinq.core.engines.bytewax.")
        if not module.name.startswith(apart):
            importlib.import_module(module.name)


def kinds(base=Node):
    """Every step that was loaded."""
    found = {one for one in base.__subclasses__() if one.__module__.startswith("wpinq.")}
    return sorted(found.union(*(kinds(one) for one in found)), key=lambda one: one.__name__)


load()
KINDS = [one for one in kinds() if not inspect.isabstract(one)]
ELSE = ("turn", "repeat", "before", "lasting", "held", "made", "opened", "engine", "indexes")
DATA = [one.name for one in fields(DataSet) if one.name not in ELSE]
"""What a data set is; whose turn it is to read it, what is said first, and where answers are computed, tell nothing of
its records; what is done to each before the bound is said for people, and is in the plan as steps."""


def others(value):
    """Values like this one that are not this one."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, (int, Fraction)):
        return [value + 1, value * 2]
    if isinstance(value, str):
        return [*COLUMNS, "a", "b", value + "x"]
    if value is None:
        return [1, "n", ("user",), True]
    if isinstance(value, Schema):
        first = value.columns[0]
        return [Schema((replace(first, **change), *value.columns[1:])) for change in
                ({"name": "z"}, {"kind": Kind.BYTES}, {"ranged": not first.ranged})]  # fmt: skip
    if isinstance(value, Periods):  # of the kind that the columns have
        return [replace(value, **one) for one in ({"span": 9}, {"months": True}, {"first": 5}, {"zone": "Asia/Tokyo"})]
    if isinstance(value, tuple):
        changed = [(*value[:at], other, *value[at + 1 :]) for at, one in enumerate(value) for other in others(one)]
        return [*changed, value[::-1], value[:-1], (*value, *value[-1:])]
    if isinstance(value, DataSet):
        return [other for name in DATA for other in data_sets(value, name)]
    if isinstance(value, Function):
        return functions(value)
    if isinstance(value, Node):
        return [other for one in fields(value) if one.metadata != SHOWN for other in alternatives(value, one.name)]
    return [replace(value, **{one.name: other}) for one in fields(value) for other in others(getattr(value, one.name))]


def functions(value):
    if isinstance(value, Rows):
        (key,) = value.schema
        moved = TOWNS.with_columns(pl.Series("town", ["Rome", "Bern"]))
        return [towns(key, TOWNS[:1]), towns(key, moved), towns(key, outer=True), towns(key, name="place")]
    if isinstance(value, Thicknesses):
        return [replace(value, step=Fraction(3)), replace(value, fingerprint=b"another")]
    if hasattr(value, "apply_many"):
        return [bind_many(lambda page: [page, "y"], value.schema, "flat_map")]
    if value.schema.names == ("group",):
        return [bind(lambda group: len(group) + 2, value.schema, "map")]
    made = [lambda user, n: (user, n + 2), lambda user, page, n: (user, n + 1) if page else None, pl.col("page") + "x"]
    return [bind(one, value.schema, "map") for one in made]


def data_sets(data, name):
    if name == "reader":
        schema = Schema((*data.reader.schema.columns, Column("more", Kind.INT)))
        frame = pl.DataFrame(schema={"user": str, "page": str, "n": int, "more": int})
        return [replace(data, reader=TupleReader(schema, frame)),
                replace(data, reader=wpinq.sources.open_source(pl.DataFrame(ROWS, schema=list(COLUMNS), orient="row"),
                                                               columns=COLUMNS))]  # fmt: skip
    if name == "ledger":
        return [replace(data, ledger=Ledger.open(None, name=data.name, unit=data.unit.text, budget=1))]
    if name == "unit":
        return [replace(data, unit=one) for one in (Unit(), Unit("user", 3), Unit("user"), Unit("page", 2),
                                                    Unit("user", 2, ("page", 2))) if one != data.unit]  # fmt: skip
    return [replace(data, **{name: other}) for other in others(getattr(data, name))]


def alternatives(node, name):
    """The step with one field changed, as far as that is still a step."""
    found = []
    for other in others(getattr(node, name)):
        if other != getattr(node, name):
            try:
                one = replace(node, **{name: other})
                assert one.schema, one.resolution
                found.append(one)
            except (WpinqError, AttributeError, TypeError, LookupError, StopIteration, ValueError):
                continue
    return found


def printed(node):
    return fingerprints(node)[node]


def test_there_is_a_sample_of_each_step():
    missing = [one.__name__ for one in KINDS if one not in NODES]
    assert not missing, f"{missing}: a plan with each in `samples` above, or a line in wpinq/testing/checks/steps.py"
    assert len({one.__qualname__ for one in KINDS}) == len(KINDS), "a fingerprint calls a step by its name"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_step_is_a_dataclass_of_its_own(kind):
    """Else its fields would not be seen."""
    assert dataclasses.is_dataclass(kind)
    assert "__init__" in vars(kind) or not vars(kind).get("__annotations__"), "a dataclass of its own"
    held = set(getattr(kind, "__slots__", ())) - {one.name for one in fields(kind)}
    assert not held


@pytest.mark.parametrize("kind", [one for one in KINDS if one is not Tap], ids=lambda kind: kind.__name__)
def test_every_field_changes_the_fingerprint(kind):
    assert kind in NODES, f"add a plan with {kind.__name__} to `samples` above"
    node = NODES[kind]
    assert printed(node) is not None
    assert printed(replace(node)) == printed(node)
    for one in fields(node):
        if one.metadata == SHOWN:
            continue
        found = alternatives(node, one.name)
        assert found, f"{kind.__name__}.{one.name}: no sample differs in it; `others` makes values"
        for other in found:
            assert printed(other) != printed(node), f"{kind.__name__}.{one.name}"


def test_a_step_that_nothing_covers_is_like_no_other():
    assert printed(NODES[Tap]) is None
    assert printed(Coarse(NODES[Tap])) is None


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_field_that_is_only_shown_is_read_by_the_title_alone(kind):
    shown = {one.name for one in fields(kind) if one.metadata == SHOWN}
    assert kind not in (Window, Moments, Cells) or shown
    tree = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    for method in (one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef) and one.name != "title"):
        read = {one.attr for one in ast.walk(method) if isinstance(one, ast.Attribute)}
        assert not read & shown, f"{kind.__name__}.{method.name}"
    for other in (one for name in shown for one in alternatives(NODES[kind], name)):
        assert printed(other) == printed(NODES[kind])


@pytest.mark.parametrize("field", DATA)
def test_every_field_of_a_data_set_changes_the_fingerprint(field):
    source = NODES[Source]
    found = [replace(source, data=other) for other in data_sets(source.data, field)]
    assert found
    for other in found:
        assert printed(other) not in (None, printed(source))


def test_columns_and_resolution_are_covered_whatever_a_step_says():
    """A step that would say nothing of a field is still told apart by what later steps see of it."""

    class Forgetful(Align):
        @property
        def meaning(self):
            return {}

    source = protected(a="integer")._node
    made = [Forgetful(source, Schema((Column(*column),)), resolution) for column, resolution in
            [(("a", Kind.INT), 1), (("b", Kind.INT), 1), (("a", Kind.ANY), 1), (("a", Kind.INT, True), 1),
             (("a", Kind.INT), 2)]]  # fmt: skip
    assert len({printed(one) for one in made}) == len(made)
