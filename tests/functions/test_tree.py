"""A tree says what Polars makes of it: the same operations, as many of them, with options that admission looks at."""

import polars as pl
import pytest
from attacks.fuzz.lengths import nodes
from attacks.fuzz.shapes import HOLE, SHAPES

from wpinq.core.functions import operations
from wpinq.core.functions.admit import admit
from wpinq.core.functions.bind import bind
from wpinq.core.functions.polars_tree import tree
from wpinq.core.functions.sql.bind import columns, parsed, translator
from wpinq.core.functions.traced.expression import RULES, Expression
from wpinq.core.functions.traced.trace import Formula
from wpinq.core.functions.tree import Node, col, lit, none_null, of_all, question_size, walk, when
from wpinq.core.records.schema import Kind, Schema

SCHEMA = Schema.of(
    t=Kind.TEXT, n=Kind.INT, x=Kind.FLOAT, b=Kind.BOOL, c=Kind.TIME, i=Kind.INSTANT, d=Kind.DATE
)  # fmt: skip
OPTIONS = {"strip": (" ",), "part": ("/", -1), "item": (-2,), "slice": (1, -1), "replace": ("a", "b")}
LOOKED_AT = ("strict", "literal", "null_on_oob", "time_zone", "non_existent", "format")


def same(made, read):
    """Whether a tree is what Polars tells of its expression."""
    assert made.name == read.name.removeprefix("function "), (made.name, read.name)
    for name in {*LOOKED_AT} & {*made.options} & {*read.options}:
        assert made.options[name] == read.options[name], (made.name, name)
    inputs = read.inputs[: len(made.inputs)]  # what Polars adds comes last
    assert len(read.inputs) == len(inputs) or operations.TABLE[made.name].added
    return all(same(one, other) for one, other in zip(made.inputs, inputs, strict=True))


def checked(made):
    read = tree(made.expr, "map")
    assert same(made, read)
    assert (made.size, made.columns) == (nodes(made.expr), read.columns)


@pytest.mark.parametrize("kind", SHAPES)
def test_a_tree_of_sql_is_what_polars_makes(kind):
    translate = translator(columns(SCHEMA, "map"), "map")
    with question_size():
        for shape in SHAPES[kind]:
            made = translate.term(parsed(HOLE.sub(lambda hole: hole[1], shape), "map")[0]).value
            checked(made)
            admit(tree(made.expr, "map"), SCHEMA, "map")


def test_a_tree_of_a_traced_operation_is_what_polars_makes():
    for name, *kinds in RULES:
        inputs = tuple(Expression.of_column("abcdefg"[place], kind) for place, kind in enumerate(kinds))
        options = OPTIONS.get(name, OPTIONS["strip"][:1] if "strip" in name or "remove" in name else ())
        made = Expression.of_rule(name, inputs, options)
        checked(made.value_tree)
        if made.test is not None:
            checked(made.test)
        assert made.size == made.value_tree.size + (0 if made.test is None else made.test.size)


def test_a_part_that_is_used_twice_is_one_node_however_large_the_tree_is():
    node = col("n")
    for _ in range(200):
        node = node + node
    assert node.size == 2**201 - 1 and len(list(walk(node))) == 201
    node = col("n")
    for _ in range(1_000):
        node = when(node > 0, node.abs(), 3) if node.size < 100 else ~node.is_null()
    assert isinstance(node.expr, pl.Expr) and len(node.code) == 32


def test_equal_trees_have_one_code_and_others_have_others():
    def made():
        return [
            col("n"), lit("n"), col("n") + 1, col("n") + 1.0, col("n") + lit(1, pl.Int64), col("n") + True,
            1 + col("n"), col("n") - 1, col("n").alias("m"), col("n").cast(pl.Int64), none_null(["n"]),
            col("n").cast(pl.Int64, strict=False), col("t").str.slice(1), col("t").str.slice(1, None),
            col("t").str.contains("a"), col("t").str.contains("a", literal=True), col("x") * 0.0, col("x") * -0.0,
            of_all("pl.coalesce", [col("n"), col("m")]), of_all("pl.min_horizontal", [col("n"), col("m")]),
            col("t").str.to_date(format="%Y", strict=False), col("t").str.to_datetime(format="%Y", strict=False),
        ]  # fmt: skip

    first, again = ([node.code for node in made()] for _ in range(2))
    assert first == again and len(set(first)) == len(first)


def test_what_is_no_operation_of_the_table_is_not_made():
    for name in ("max", "sum", "shift", "rank", "map_elements", "shuffle", "over"):
        assert not hasattr(col("n"), name)
    assert not hasattr(col("t").str, "json_decode") and not hasattr(col("t").list, "eval")


def test_a_tree_cannot_say_another_operation_than_it_makes():
    assert Node("Abs", (col("n"),), method="op.eq").name == "Eq"
    for made in (lambda: Node("Abs", (col("n"),), method="cum_sum"), lambda: Node("Abs", (col("n"),)).expr):
        with pytest.raises((KeyError, AttributeError)):
            made()


def test_a_tree_is_neither_true_nor_false():
    for asked in (lambda: bool(col("n") == 1), lambda: col("n") in (col("m"), col("t")), lambda: not col("n")):
        with pytest.raises(TypeError, match="neither true nor false"):
            asked()


def test_names_of_functions_are_no_names_of_anything_else():
    groups = [{"Series"}, operations._read(operations._TREE), operations.OPERATORS, operations.FUNCTIONS]
    assert len(set().union(*groups)) == sum(map(len, groups))


def test_a_column_is_one_question_whoever_names_it():
    sent = Formula((Expression.of_column("t", Kind.TEXT),), ("t",))
    forms = ["t", pl.col("t"), [pl.col("t")], col("t"), lambda t: t, "T", '"t"', sent]
    assert len({bind(form, SCHEMA, "map").covered for form in forms}) == 1
    assert len({bind(form, SCHEMA, "map").covered for form in ("t", "t AS u", "n", [col("t"), col("n")])}) == 4


def test_a_cast_that_may_fail_is_the_cast_which_is_null_then():
    first, second = (bind(f"{word}(t AS INTEGER) AS n", SCHEMA, "map") for word in ("CAST", "TRY_CAST"))
    assert first.covered == second.covered
    assert [second.call(("7" if good else "x", 1, 1.0, True, None, None, None)) for good in (True, False)] == [
        (7,),
        (None,),
    ]
