"""Attacks by functions that mean something else after a while, with a plan that looks the same.

One question is asked, then something that its function captured changes, then it is asked again. Were it the same
question, it would be free, and refused exactly where the change mattered: whether alice is there, for any epsilon. So
either the plan still means what it meant, or it is a new question, which is charged.
"""

# ruff: noqa: PLW0108, B023, PTH208   lambdas, loops and listings are what is attacked here
import builtins
import contextvars
import datetime as dt
import functools
import importlib
import locale
import math
import operator
import os
import random
import sys
import threading
import time
import types
from decimal import ROUND_UP, Decimal, DefaultContext
from enum import Enum

import numpy as np
import polars as pl
import pytest
from depth import thin

import wpinq

TINY = "1/1000000"


def module(name, text, path=None):
    """A module of the user's, from text."""
    found = types.ModuleType(name)
    if path is not None:
        (path / f"{name}.py").write_text(text)
        found.__file__ = str(path / f"{name}.py")
    exec(compile(text, f"{name}.py", "exec"), vars(found))
    return found


def container_method(path, patch):
    names = {"bob": 0, "alice": 0}
    return names.get, lambda: names.update(alice=7)


def partial_of_a_list(path, patch):
    block = ["x"]
    return functools.partial(lambda block, user: int(user in block), block), lambda: block.append("alice")


def tuple_of_a_list(path, patch):
    block = (["x"],)
    return lambda user: int(user in block[0]), lambda: block[0].append("alice")


def list_in_a_dictionary(path, patch):
    block = {"names": ["x"]}
    return lambda user: int(user in block["names"]), lambda: block["names"].append("alice")


def closure_of_a_helper(path, patch):
    block = []

    def helper(user):
        return user in block

    return lambda user: int(helper(user)), lambda: block.append("alice")


def closure_that_is_assigned(path, patch):
    wanted = "x"

    def assign():
        nonlocal wanted
        wanted = "alice"

    return lambda user: int(user == wanted or user == ""), assign


def default_argument(path, patch):
    block = []

    def function(user, block=block):
        return int(user in block)

    return function, lambda: block.append("alice")


def keyword_default(path, patch):
    def function(user, *, wanted="x"):
        return int(user == wanted if user else 0)

    return function, lambda: function.__kwdefaults__.update(wanted="alice")


def code_that_is_exchanged(path, patch):
    def function(user):
        return int(user == "x" if user else 0)

    return function, lambda: setattr(function, "__code__", (lambda user: int(user == "alice")).__code__)


def helper_that_is_exchanged(path, patch):
    space = {"__name__": "__main__"}
    exec("def helper(user): return 0\ndef f(user): return helper(user)", space)
    return space["f"], lambda: exec("def helper(user): return int(user == 'alice')", space)


def module_of_the_user(path, patch):
    own = module("own_tables", "NAMES = {'x'}\ndef hit(user): return int(user in NAMES)")
    return lambda user: own.hit(user), lambda: own.NAMES.add("alice")


def module_called_like_one_of_pythons(path, patch):
    own = module("profile", "def hit(user): return 0", path)
    patch.setitem(sys.modules, "profile", own)

    def change():
        exec("def hit(user): return int(user == 'alice')", vars(own))

    return lambda user: own.hit(user), change


def module_that_is_patched(path, patch):
    return lambda user: math.gcd(len(user), 7), lambda: patch.setattr(math, "gcd", lambda a, b: 3 if a == 5 else 1)


def builtin_that_is_patched(path, patch):
    own = module("own_numbers", "def f(user): return oct(len(user)) if user else 0")
    return own.f, lambda: patch.setattr(builtins, "oct", lambda number: number == 5)


def remembered_results(path, patch):
    block = []
    return functools.lru_cache(lambda user: int(user in block)), lambda: block.append("alice")


def decorated(path, patch):
    block = []

    def decorator(function):
        @functools.wraps(function)
        def wrapper(user):
            return function(user) + (user in block)

        return wrapper

    return decorator(lambda user: 0 if user else 1), lambda: block.append("alice")


def dispatched(path, patch):
    @functools.singledispatch
    def function(user):
        return 0

    return function, lambda: function.register(str, lambda user: int(user == "alice"))


def array(path, patch):
    block = np.array(["x    "])
    return lambda user: int(user in block), lambda: block.__setitem__(0, "alice")


def series(path, patch):
    held = types.SimpleNamespace(block=pl.Series(["x"]))
    return lambda user: int(user in held.block), lambda: setattr(held, "block", pl.Series(["alice"]))


class Table:
    names = ("x",)

    def __init__(self):
        self.seen = ["x"]

    def __call__(self, user):
        return int(user in self.seen)

    def hit(self, user):
        return int(user in self.seen)

    @classmethod
    def known(cls, user):
        return int(user in cls.names)


def callable_object(path, patch):
    table = Table()
    return table, lambda: table.seen.append("alice")


def bound_method(path, patch):
    table = Table()
    return table.hit, lambda: table.seen.append("alice")


def attribute_of_a_class(path, patch):
    return lambda user: Table.known(user), lambda: patch.setattr(Table, "names", ("alice",))


def attribute_of_a_function(path, patch):
    def function(user):
        return int(user in function.names)

    function.names = ["x"]
    return function, lambda: function.names.append("alice")


def attribute_of_a_helper(path, patch):
    def helper(user):
        return int(user in helper.names)

    helper.names = ["x"]
    return lambda user: helper(user), lambda: helper.names.append("alice")


def member_of_an_enumeration(path, patch):
    kind = Enum("kind", {"wanted": ["x"]})
    return lambda user: int(user in kind.wanted.value), lambda: kind.wanted.value.append("alice")


def iterator(path, patch):
    items = iter(["bob", "alice", "cid"])
    return lambda user: int(next(items, None) == user), lambda: next(items, None)


def generator(path, patch):
    def items():
        yield from ["bob", "alice"]

    given = items()
    return lambda user: int(user in given), lambda: next(given, None)


def own_state(path, patch):
    """A function that changes what it holds: its copy is another one after a run."""
    seen = []

    def function(user):
        seen.append(user)
        return int(len(seen) > 3)

    return function, lambda: None


def popped(path, patch):
    items = [1, 2, 3, 4, 5, 6]
    return lambda user: items.pop() if user else 0, lambda: None


def bound_mutation(path, patch):
    items = {}
    return items.setdefault, lambda: items.update(alice=7)


def context_variable(path, patch):
    variable = contextvars.ContextVar("variable", default="x")
    return lambda user: int(user == variable.get()), lambda: variable.set("alice")


def thread_local(path, patch):
    local = threading.local()
    local.names = ["x"]
    return lambda user: int(user in local.names), lambda: local.names.append("alice")


def random_numbers(path, patch):
    return lambda user: random.getrandbits(1) if user else 0, lambda: None


def environment(path, patch):
    return lambda user: int(user == os.getenv("WANTED")), lambda: patch.setenv("WANTED", "alice")


def listed_directory(path, patch):
    return lambda user: int(user in os.listdir(path)), lambda: (path / "alice").touch()


def read_table(path, patch):
    file = path / "b.csv"
    file.write_text("u\nx\n")
    return lambda user: int(user in pl.read_csv(file)["u"].to_list()), lambda: file.write_text("u\nalice\n")


def read_lines(path, patch):
    import linecache

    file = path / "b.txt"
    file.write_text("x\n")

    def change():
        file.write_text("alice\n")
        linecache.clearcache()

    return lambda user: int(user + "\n" in linecache.getlines(str(file))), change


def opened_file(path, patch):
    file = path / "c.txt"
    file.write_text("x")
    return lambda user: int(user == open(file).read()), lambda: file.write_text("alice")  # noqa: PTH123


def imported_inside(path, patch):
    (path / "own_names.py").write_text("NAMES = ['x']\n")
    patch.syspath_prepend(path)

    def function(user):
        import own_names

        return int(user in own_names.NAMES)

    def change():
        importlib.import_module("own_names").NAMES.append("alice")
        patch.delitem(sys.modules, "own_names", raising=False)
        (path / "own_names.py").write_text("NAMES = ['x', 'alice']\n")
        importlib.invalidate_caches()

    return function, change


def decimal_context(path, patch):
    def change():
        patch.setattr(DefaultContext, "prec", 2)
        patch.setattr(DefaultContext, "rounding", ROUND_UP)

    return lambda user: str(Decimal(len(user)) / 3) if user else "", change


def digits_of_integers(path, patch):
    def change():
        sys.set_int_max_str_digits(640)

    return lambda user: len(str(10 ** (200 * len(user)))) if user else 0, change


MOMENT = dt.datetime(2026, 1, 1)


def another_zone(patch):
    patch.setenv("TZ", "Asia/Tokyo")
    time.tzset()


def zone_of_a_format(path, patch):
    return lambda user: f"{MOMENT:%s}" if user == "alice" else "", lambda: another_zone(patch)


def zone_of_a_method_by_another_name(path, patch):
    seconds = dt.datetime.timestamp
    return lambda user: seconds(MOMENT) if user == "alice" else 0, lambda: another_zone(patch)


def clock_of_a_getter(path, patch):
    now = operator.methodcaller("now", tz=None)
    return lambda user: now(dt.datetime).microsecond if user == "alice" else 0, lambda: None


def clock_of_a_getter_that_is_made(path, patch):
    return lambda user: operator.attrgetter("now")(dt.datetime)().microsecond if user == "alice" else 0, lambda: None


def sign_of_what_is_no_number(path, patch):
    number = float("nan")

    def change():
        nonlocal number
        number = -number

    return lambda user: math.copysign(1, number) if user == "alice" else 0, change


def one_list_that_becomes_two(path, patch):
    one = other = [0]

    def change():
        nonlocal other
        other = [0]

    return lambda user: int(one is other) if user == "alice" else 0, change


CASES = [
    container_method, partial_of_a_list, tuple_of_a_list, list_in_a_dictionary, closure_of_a_helper,
    closure_that_is_assigned, default_argument, keyword_default, code_that_is_exchanged, helper_that_is_exchanged,
    module_of_the_user, module_called_like_one_of_pythons, module_that_is_patched, builtin_that_is_patched,
    remembered_results, decorated, dispatched, array, series, callable_object, bound_method, attribute_of_a_class,
    attribute_of_a_function, attribute_of_a_helper, member_of_an_enumeration, iterator, generator, own_state, popped,
    context_variable, thread_local, random_numbers, environment, listed_directory, read_table, read_lines,
    opened_file, imported_inside, decimal_context, digits_of_integers, zone_of_a_format,
    zone_of_a_method_by_another_name, clock_of_a_getter, clock_of_a_getter_that_is_made, sign_of_what_is_no_number,
    one_list_that_becomes_two,
]  # fmt: skip


@pytest.fixture
def patch(monkeypatch):
    digits = sys.get_int_max_str_digits()
    yield monkeypatch
    sys.set_int_max_str_digits(digits)
    monkeypatch.undo()
    time.tzset()


@thin(6)
@pytest.mark.parametrize("anew", [False, True], ids=["one plan twice", "written again"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_what_a_function_captured_changes_no_question(case, anew, tmp_path, patch):
    for number, records in enumerate(([("bob",), ("cid",)], [("bob",), ("cid",), ("alice",)])):
        (tmp_path / str(number)).mkdir()
        data = wpinq.protect(records, budget=1, columns={"user": str})
        with patch.context() as inner:
            function, change = case(tmp_path / str(number), inner)
            plan = data.map(function, columns={"v": object})
            first = plan.measure(TINY)
            first.observe(0)
            change()
            again = (data.map(function, columns={"v": object}) if anew else plan).measure(TINY)
            again.observe(0)  # were it refused, it would be so where alice is


def test_a_plan_means_what_it_meant():
    """What is copied is what is run: answers of a later measurement of the plan are those of the first."""
    block, data = {"names": ["x"]}, wpinq.protect([("alice",), ("bob",)], budget=400, columns={"user": str})
    plan = data.map(lambda user: int(user in block["names"]), columns={"v": int})
    block["names"].append("alice")
    assert plan.measure(100).observe_many([0, 1]).tolist() == [2, 0]  # the noise is zero but for a chance of exp(-100)
    again = data.map(lambda user: int(user in block["names"]), columns={"v": int}).measure(100)
    assert again.observe_many([0, 1]).tolist() == [1, 1]


@pytest.mark.parametrize("name", ["profile", "calendar", "textwrap"])
def test_an_edited_helper_is_another_question_whatever_its_module_is_called(name, tmp_path, monkeypatch):
    prints = []
    for number, body in enumerate(["user", "user.upper()", "user"]):
        own = module(name, f"def clean(user):\n    return {body}\n", tmp_path)
        monkeypatch.setitem(sys.modules, name, own)
        data = wpinq.protect([("bob",)], budget=1, columns={"user": str}, version="1")
        prints.append(data.map(lambda user: own.clean(user))._node.function.fingerprint)
        assert prints[number] is not None
    assert prints[0] == prints[2] != prints[1]


def test_the_zone_and_the_locale_of_the_computer_are_covered(monkeypatch):
    from wpinq.core.functions.bind import bind
    from wpinq.core.records.schema import Kind, Schema

    schema = Schema.of(at=Kind.TIME)
    moments, words = (bind(one, schema, "map") for one in (lambda at: at.timestamp() if at else 0,
                                                           lambda at: f"{at:%B}" if at else ""))  # fmt: skip
    assert isinstance(moments.call((dt.datetime(2026, 1, 1),))[0], (int, float))
    before = moments.covered, words.covered
    assert None not in before
    with monkeypatch.context() as inner:
        inner.setenv("TZ", "Asia/Tokyo")
        assert moments.covered not in (None, before[0]), "it means something else now"
        inner.setattr(locale, "setlocale", lambda category, real=locale.setlocale: "xx" + real(category))
        assert words.covered not in (None, before[1])
    assert (moments.covered, words.covered) == before


def test_functions_that_look_into_one_module_each_find_what_they_look_up():
    """Each of them has its own part of `math`, of which one copy had but the part of the first."""

    def whole(number):
        return math.floor(number)

    def root(number):
        return None if number is None else whole(math.sqrt(number))

    data = wpinq.protect([(4.0,)] * 7, columns={"number": float}, budget=1000)
    assert data.map(root).measure(500).observe(2) == 7  # the noise is zero but for a chance of exp(-500)


def test_parts_of_a_module_that_helpers_look_up_are_covered():
    own = module("settings", "first, second = 1, 2")

    def helper(user):
        return len(user) + own.second

    data = wpinq.protect([("bob",)], budget=1, columns={"user": str})
    prints = []
    for own.second in (2, 3, 2):
        prints.append(data.map(lambda user: helper(user) + own.first)._node.function.fingerprint)
    assert prints[0] == prints[2] != prints[1]
    assert None not in prints


def test_what_leads_to_frames_is_not_known():
    """A frame holds the records that are still to come."""
    data = wpinq.protect([("bob",)], budget=1, columns={"user": str})
    steps = (one for one in [1])
    for function in (lambda user: steps.gi_frame.f_lineno, lambda user: next((one for one in user).gi_frame.f_back)):
        assert data.map(function)._node.function.fingerprint is None
