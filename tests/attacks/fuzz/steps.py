"""Random steps: Python for one call on a collection of known columns."""

from __future__ import annotations

import keyword
from random import Random

from attacks.fuzz.pools import literal

Columns = tuple[tuple[str, str], ...]
NUMBERS = ("integer", "number")


def plain_name(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name)


def named(rng: Random, columns: Columns, *kinds: str) -> tuple[str, str] | None:
    """A column that a parameter can be called like, of one of these kinds."""
    found = [(name, kind) for name, kind in columns if plain_name(name) and (not kinds or kind in kinds)]
    return rng.choice(found) if found else None


def test(rng: Random, columns: Columns) -> str:
    """A predicate: traced, plain, a Polars expression or SQL."""
    name, kind = named(rng, columns) or (None, None)
    if name is None:
        return "lambda *all: len(all) > 0"
    value, sign = literal(rng, kind), rng.choice(["==", "!=", "<", ">=", "=="])
    if kind in ("value", "boolean") or value in ("True", "False"):
        sign = rng.choice(["==", "!="])
    choices = [
        f"lambda {name}: {name} {sign} {value}",
        f"lambda {name}: bool({name} {sign} {value}) or False",
        f"lambda {name}: {name} is None",
        f"lambda {name}: {name} != {name}",
        f"lambda {name}: False",
    ]
    if kind in ("integer", "number", "text"):
        choices += [f"pl.col({name!r}) {sign} {value}", f"pl.col({name!r}).is_null()"]
    if kind == "number":
        choices += [f"pl.col({name!r}) < {rng.choice(['inf', '-inf', 'nan', '1.0'])}", f"pl.col({name!r}).is_nan()"]
    return rng.choice(choices)


def value_of(rng: Random, columns: Columns) -> tuple[str, str]:
    """Python for a value of a record, and the parameters that it reads."""
    name, kind = named(rng, columns) or (None, None)
    if name is None:
        return "0", "*all"
    own = literal(rng, kind)
    choices = [name, name, f"({name} if {name} == {own} else None)", f"({name} is None)"]
    if kind == "integer":
        choices += [f"{name} % 3", f"-({name} % 5)", f"{name} // 2"]
    if kind == "number":
        choices += [f'("none" if {name} != {name} else "some")', f"{name} * 2", f"{name} + 1"]
    if kind == "text":
        choices += [f"{name}.upper()", f"len({name})", f"({name} + 'a')"]
    if kind == "value":
        choices += [f"({name}, 1)", f"(None if {name} == 1 else {name})"]
    if rng.random() < 0.03:
        return f"thing.same({name})", name
    return rng.choice(choices), name


def mapped(rng: Random, columns: Columns, heavy: bool = False) -> str:
    """A map."""
    roll = rng.random()
    if roll < 0.35:
        chosen = rng.sample(columns, rng.randint(1, min(2, len(columns))))
        chosen = [name for name, _ in chosen if plain_name(name)]
        if chosen:
            own = chosen[0] if len(chosen) == 1 else f"({', '.join(chosen)})"
            return f"map(lambda {', '.join(chosen)}: {own})" if rng.random() < 0.5 else (
                "map(" + repr(", ".join('"' + name + '"' for name in chosen)) + ")"
            )  # fmt: skip
    parts = [value_of(rng, columns) for _ in range(rng.randint(1, 2))]
    parameters = ", ".join(dict.fromkeys(one for _, one in parts))
    body = ", ".join(part for part, _ in parts)
    if "*all" in parameters:
        parameters = "*all"
    extra = ""
    if rng.random() < 0.5:
        types = rng.choice(["object", "object", "int", "str", "float"])
        extra = f", columns={{{', '.join(f'{chr(118 + i)!r}: {types}' for i in range(len(parts)))}}}".replace("'", '"')
    result = f"({body},)" if len(parts) > 1 else body
    return f"map(lambda {parameters}: {result}{extra})"


def several(rng: Random, columns: Columns, heavy: bool = False) -> str:
    """A flat_map."""
    value, parameter = value_of(rng, columns)
    made = rng.choice([f"[{value}, {value}]", f"[{value}, 'other', 0]", f"[{value}]", f"['n'] * (1 + ({value} != 1))"])
    return f'flat_map(lambda {parameter}: {made}, columns=["v"]{rng.choice(["", ", at_most=2", ", at_most=3"])})'


def key(rng: Random, columns: Columns) -> str:
    name = rng.choice(columns)[0]
    if rng.random() < 0.75:
        return repr(name)
    value, parameter = value_of(rng, columns)
    return f"lambda {parameter}: {value}"


def shaved(rng: Random, columns: Columns, heavy: bool = False) -> str:
    """A shave: heavy weights in few slices."""
    cut = rng.choice(
        ["2**60", "2**59", "[1, 2**60]"] if heavy else ["", "", "", "2", "'1/2'", "[1, '1/3', 2]", "'1/3'"]
    )
    name = rng.choice(["", "", "name='a'", "name='b'", "name='user'", "name='index'"])
    return f"shave({', '.join(one for one in (cut, name) if one)})"


def grouped(rng: Random, columns: Columns, heavy: bool = False) -> str:
    """A group_by: a whole group of heavy weights would name each record so often."""
    reduce = rng.choice([
        "", ", len", ", len", ", len, columns=['a']", ", len, columns=['b']", ", lambda group: len(group)", ", first",
    ])  # fmt: skip
    return f"group_by({key(rng, columns)}{reduce}{'' if heavy else rng.choice(['', '', ', whole=True'])})"


def limited(rng: Random, columns: Columns, heavy: bool = False) -> str:
    return f"limit({key(rng, columns)}{rng.choice(['', ', 2', ', 2**40'])})"


def filtered(rng: Random, columns: Columns, heavy: bool = False) -> str:
    return f"filter({test(rng, columns)})"


UNARY = [
    (4, mapped), (4, filtered), (1, several), (3, shaved), (1, lambda *_: "distinct()"), (2, grouped), (1, limited),
]  # fmt: skip


def unary(rng: Random, columns: Columns, heavy: bool) -> str:
    """One call."""
    weights, makers = zip(*UNARY, strict=True)
    return rng.choices(makers, weights)[0](rng, columns, heavy)


ALIKE = ["concat", "concat", "subtract", "union", "union", "intersect"]
KEYED = ["join", "semijoin", "antijoin"]


def binary(rng: Random, columns: Columns, other: Columns) -> str:
    """One call with `{}` in place of the other collection."""
    both = [name for name, _ in columns if name in dict(other)]
    if (len(columns) == len(other) and rng.random() < 0.7) or not both:
        return f"{rng.choice(ALIKE)}({{}})"
    name = rng.choice(both)
    call = rng.choice(KEYED)
    return f"{call}({{}}, on={name!r}{rng.choice(['', '', ', at_most=3']) if call == 'join' else ''})"


def parts(rng: Random, columns: Columns) -> tuple[str, list[str]]:
    """A partition, and Python for each of its parts."""
    name, kind = rng.choice(columns)
    if kind == "integer":
        found = rng.choice([["1", "2", "3", "4"], ["0", "1"], ["1", "True", "2"], ["2**53", "2**53 + 1"]])
    elif kind == "number":
        close = "Fraction(1, 10) + Fraction({}, 10**40)"
        found = rng.choice([[close.format(i) for i in range(1, 4)], ["nan", "1.0", "0.1"], ["2**53", "2**53 + 1"],
                            ["inf", "-inf"], ["0.1", "Fraction(1, 10)"]])  # fmt: skip
    else:
        found = list(dict.fromkeys([*(literal(rng, kind) for _ in range(3)), "None"]))
    return f"partition({name!r}, [{', '.join(found)}])", found
