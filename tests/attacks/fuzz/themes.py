"""Where a case begins: tables and first steps that bring together what has gone wrong before; the rest is random.

Each theme is a bias, not a test: it draws its values, its neighbour and all that follows at random.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attacks.fuzz import tables

if TYPE_CHECKING:
    from attacks.fuzz.grow import Grower


def by_time(grower: Grower) -> None:
    """Windows of people's records, right over the source or over a step in which they meet."""
    rng = grower.rng
    base = rng.choice(["c0", "c0", grower.add("c0.distinct()"), grower.add("c0.filter(lambda page: page == 'x')"),
                       grower.add("c0.shave()")])  # fmt: skip
    span = rng.choice([1, 2])
    if base and grower.add(f"{base}.window({span}, at='time')"):
        grower.windowed = ("time", span)
    grower.parts = (base or "c0", rng.choice(["partition('time', [1, 2, 3])", "partition('page', ['x', 'y'])"]), [])
    grower.parts = (*grower.parts[:2], ["1", "2", "3"] if "time" in grower.parts[1] else ["'x'", "'y'"])


def by_index(grower: Grower) -> None:
    """Parts or windows of what shave numbers."""
    rng = grower.rng
    base = grower.add(f"c0.shave({rng.choice(['', '2', chr(39) + '1/2' + chr(39)])})")
    if base and rng.random() < 0.5:
        made = grower.add(f"{base}.window({rng.choice([1, 1, 2])}, at='index')")
        grower.windowed = ("index", 1) if made else None
    elif base:
        grower.parts = (base, "partition('index', [1, 2, 3, 4])", ["1", "2", "3", "4"])


def by_number(grower: Grower) -> None:
    """Parts of numbers that are close, and tests of numbers."""
    rng = grower.rng
    close = [f"Fraction(1, 10) + Fraction({i}, 10**40)" for i in range(1, 4)]
    parts = rng.choice([close, ["2**53", "2**53 + 1"], ["0.1", "1.0", "nan"], ["0.0", "-0.0"], ["0.1", "2.5"]])
    grower.parts = ("c0", f"partition('x', [{', '.join(parts)}])", parts)
    tests = ["lambda x: x != 1.0", "lambda x: bool(x != 1.0) or False", "lambda x: x is None", "lambda x: x < 0.5"]
    if rng.random() < 0.5:
        grower.add(f"c0.filter({rng.choice(tests)})")
        value = rng.choice(['"none" if x != x else "some"', "x * 2", "x"])
        grower.add(f"c0.map(lambda x: {value})")
        grower.add('c0.flat_map(lambda x: ["n" if x != x else "v"], columns=["v"], at_most=1)')


def one_person(grower: Grower) -> None:
    """Two data sets of the same people, measured together and published."""
    rng = grower.rng
    both = grower.add(f"c0.{rng.choice(['concat', 'concat', 'union', 'subtract'])}(c1)")
    pages = grower.add(f"{both or 'c0'}.map('page')")
    asked = grower.add(f"{pages or 'c0'}.measure(epsilon={rng.choice([1, 3, 10])})", "m")
    if asked:
        grower.say(f"{asked}.release(delta={rng.choice(['1e-6', '1e-4'])})")
    if rng.random() < 0.5 and pages:
        grower.add(f"{pages}.select(epsilon={rng.choice([1, 5])}, delta=1e-6)", "s")


def renamed(grower: Grower) -> None:
    """The same steps under other names, or with literals that are nearly the same."""
    rng = grower.rng
    base = rng.choice(["c0", grower.add("c0.map(lambda u: u)"), grower.add("c0.filter(lambda u: u == 'alice')")])
    make = rng.choice([
        ["shave('1/2', name='{}')", "shave('1/2', name='{}')", "map(lambda a: a + 0)"],
        ["shave(name='{}')", "shave(2, name='{}')", "map(lambda a: a + 0)"],
        ["group_by('u', len, columns=['{}'])", "shave('1/4', name='{}')", "map(lambda a: a + 0)"],
        ["map(lambda u: (u == 'bob', len(u)), columns={{'{}': int, '{}': int}})", "map(lambda a: a + 0)"],
        ["group_by('u', lambda g: (len(g), 7), columns={{'{}': int, '{}': int}})", "map(lambda a: a + 0)"],
    ])  # fmt: skip
    for names in (["a", "b"], ["b", "a"]):
        made: str | None = base
        left = iter(names)
        for step in make:
            given = [next(left) for _ in range(step.count("{}"))]
            made = grower.add(f"{made}.{step.format(*given)}") if made else None
        if made:
            grower.add(f"{made}.measure(epsilon=1)", "m")


def literals(grower: Grower) -> None:
    """Tests that differ in a literal only."""
    rng = grower.rng
    choices = ["inf", "-inf", "nan", "0.1", "1.0", "1", "0.0", "None"]
    make = rng.choice(["pl.col('x') < {}", "pl.col('x') == {}", "pl.col('x').is_in([{}, 7.0])", "pl.col('x') >= {}"])
    for one in rng.sample(choices, 4):
        made = grower.add(f"c0.filter({make.format(one)})")
        if made:
            grower.add(f"{made}.measure(epsilon=1)", "m")


def reader(grower: Grower) -> None:
    """Steps that read few columns of what others read whole."""
    rng = grower.rng
    test = rng.choice(["lambda u: u == 'alice'", "\"u = 'alice'\""])
    mine = grower.add(f"c0.filter({test}).map('u, p, n')")
    both = grower.add(f"c0.{rng.choice(['concat', 'union', 'subtract'])}({mine or 'c0'})")
    call = rng.choice(["semijoin", "antijoin", "join"])
    grower.add(f"c0.{call}({both or 'c0'}, on={rng.choice(['p', 'u'])!r})")


def unfingerprinted(grower: Grower) -> None:
    """A query whose questions cannot be told from new ones, at the edge of a budget."""
    rng = grower.rng
    own = rng.choice(["thing.same(p)", "thing.same(p)", "p"])
    made = grower.add(f"c0.map(lambda p, n: ({own}, n), columns={{'p': str, 'n': int}})")
    if made is None:
        return
    query = "SELECT p, COUNT(*) AS c, SUM(n) AS s, AVG(n) AS m FROM t GROUP BY p"
    call = rng.choice([
        f"sql({query!r}, {{'t': NAME}}, epsilon=EPS, keys=['x'], bounds={{'n': (0, 10)}})",
        "degrees.release(NAME.map(lambda p: p), epsilon=EPS, split=0.5)",
        "NAME.mean('n', bounds=(0, 10), epsilon=EPS)",
        "NAME.variance('n', bounds=(0, 10), epsilon=EPS)",
    ])  # fmt: skip
    grower.add(call.replace("NAME", made).replace("EPS", rng.choice(["1.5", "1", "0.5", "2"])), "a", always=True)


def together(grower: Grower) -> None:
    """Data sets of one name and one version."""
    grower.add(f"c0.{grower.rng.choice(['concat', 'union', 'subtract', 'intersect'])}(c1)")


def again(grower: Grower) -> None:
    """The same questions about each version of a data set."""
    rng = grower.rng
    step = rng.choice(["map('page')", "map('user')", "distinct('page')", "filter(lambda page: page == 'a')", "shave()"])
    epsilon = rng.choice(["0.1", "0.5", "1"])
    for number in range(len(grower.tables)):
        made = grower.add(f"c{number}.{step}")
        asked = grower.add(f"{made}.measure(epsilon={epsilon})", "m") if made else None
        if asked and rng.random() < 0.3:
            grower.say(f"{asked}.release(delta=1e-6)")


def nulls(grower: Grower) -> None:
    """None as a source holds it and as a function makes it."""
    rng = grower.rng
    one = grower.add("c0.map(lambda k, v: v)")
    value = rng.choice(["None if k == 'B' else v", "v if v == 1 else None"])
    made = grower.add(f"{rng.choice(['c0', 'c1'])}.map(lambda k, v: {value}, columns={{'v': object}})")
    if one and made:
        both = grower.add(f"{one}.{rng.choice(['union', 'intersect', 'concat', 'subtract'])}({made})")
        if both and rng.random() < 0.4:
            grower.add(f"{both}.distinct()")
    grower.parts = ("c0", "partition('v', [None, 'x'])", ["None", "'x'"])


def gathered(grower: Grower) -> None:
    """Far dates among other values."""
    rng = grower.rng
    grower.add(rng.choice([
        "c0.map('d').concat(c0.map('s'))", "c0.group_by('s')", "c0.group_by('s', lambda group: len(group))",
        "c0.map(lambda d: d)", "c0.map(lambda d: str(d), columns={'v': str})", "c0.group_by('d', len)",
    ]))  # fmt: skip


def gain(grower: Grower) -> None:
    """Weights far beyond those of one record, before a step that is not linear."""
    rng = grower.rng
    base = grower.add(rng.choice(["c0.map(lambda page: 0, columns={'v': int})", "c0.map('page')"]))
    heavy = grower.add(f"double({base or 'c0'}, {rng.choice([6, 7, 8, 9, 10])})")
    none = grower.add(f"{heavy}.filter(lambda *all: False)")
    if heavy and none:
        grower.add(
            rng.choice(
                [
                    f"{heavy}.union({none})",
                    f"{heavy}.shave(2**60, name='k').map(lambda k: k)",
                    f"{heavy}.intersect({none})",
                ]
            )
        )


def heavier(grower: Grower) -> None:
    """The same without a column of weights."""
    base = grower.add("c0.map('p')")
    heavy = grower.add(f"double({base or 'c0'}, {grower.rng.choice([58, 59, 60, 61, 62])})")
    none = grower.add(f"{heavy}.filter(lambda *all: False)")
    if heavy and none:
        grower.add(f"{heavy}.union({none})")


def nothing(grower: Grower) -> None:
    """No first steps."""


THEMES = {
    "index": (tables.live_pages, by_index),
    "numbers": (tables.numbers, by_number),
    "person": (tables.person_twice, one_person),
    "names": (tables.people, renamed),
    "literals": (tables.numbers, literals),
    "reader": (tables.people, reader),
    "unfingerprinted": (tables.people, unfingerprinted),
    "twins": (tables.twins, together),
    "versions": (tables.versions, again),
    "nulls": (tables.anything, nulls),
    "visits": (tables.visits, by_time),
    "dates": (tables.far, gathered),
    "weights": (tables.weighed, gain),
    "gain": (tables.people, heavier),
    "odd": (tables.odd_names, nothing),
}
