"""What a question may take follows from its letters: few cases here, `python -m attacks.fuzz --of lengths` goes on."""

import random

import pytest
import sqlglot
from attacks.fuzz import lengths
from attacks.fuzz.shapes import HOLE, LAMBDAS, LEAVES, SHAPES, Texts
from depth import deeper, often, thin

from wpinq.core.functions.sql.bind import RULES
from wpinq.core.functions.traced.expression import RULES as TRACED


def named(text):
    """The rules that a text needs, as the translator finds them."""
    found = [(type(node).__name__, node) for node in sqlglot.parse_one(f"SELECT {text}", dialect="postgres").walk()]
    return {node.name.lower() if name == "Anonymous" else name for name, node in found}


def test_there_is_a_shape_of_every_rule():
    made = [shape for shapes in SHAPES.values() for shape in shapes]
    texts = [
        *(HOLE.sub(lambda hole: hole[1], shape) for shape in made),
        *(leaf for some in LEAVES.values() for leaf in some),
    ]
    known = set().union(*map(named, texts))
    missing = set(RULES) - known
    assert not missing, f"shapes.SHAPES has none of {sorted(missing)}"


def test_every_operation_that_is_traced_is_tried(monkeypatch):
    from wpinq.core.functions.traced.expression import Expression

    seen, real = set(), Expression.of_rule
    monkeypatch.setattr(Expression, "of_rule", lambda name, *rest: seen.add(name) or real(name, *rest))
    import wpinq

    views = wpinq.protect([], budget=1, columns=lengths.COLUMNS)
    texts = Texts(random.Random(0), LAMBDAS, {kind: [kind] for kind in lengths.NAMES}, 100)
    for shape in (shape for some in LAMBDAS.values() for shape in some):
        scope = {}
        exec(f"def made(t, n, x, b, c, d):\n    return {texts.filled(shape)}", scope)
        views.map(scope["made"])
    assert seen == {name for name, *_ in TRACED}


def test_every_step_of_plans_is_tried():
    texts = [lengths.sent(random.Random(seed))[0] for seed in range(40)]
    assert all(any(f'"do":"{step}"' in text for text in texts) for step in lengths.STEPS)


@deeper
@thin(3)
@pytest.mark.parametrize("first", range(0, 24, 8))
def test_what_a_question_takes_grows_like_its_text(first):
    for seed in range(first, first + often(8)):
        assert not lengths.FUZZER.wrong(seed)
