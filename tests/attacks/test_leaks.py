"""A marker is planted in records, weights and bins; everything is made to fail; nothing that comes out may hold it.

Searched: messages, arguments and attributes of exceptions and of all that they chain, formatted tracebacks, logs,
warnings, what the process writes (bytewax and Rust write by themselves), `repr` and pickles, the ledger and the files
beside it.
Not searched: the local variables in a traceback's frames. Whoever can run Python in the curator's process can read the
data itself; the promise is about what leaves it.
"""

import copy
import functools
import gzip
import logging
import os
import pickle
import sys
import traceback
import warnings
from pathlib import Path

import polars as pl
import processes
import pytest
from depth import deep, thin

import wpinq
from wpinq.core.engines import installed, shards
from wpinq.core.engines.job import Lowered
from wpinq.core.functions.traced.columnar import Columnar
from wpinq.core.operators.slices import RangedSlices, Slices
from wpinq.core.records.batch import Batch
from wpinq.core.state.histogram import Histogram

MARK = "zqxmarkerxqz"
COUNT = 90_877  # of records of one page: a true count that no message may show
ROOT = Path(__file__).parents[2]


def told(error):
    """All that an exception says, and those that it chains."""
    texts, todo, seen = [], [error], set()
    while todo:
        one = todo.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        texts += [
            str(one),
            repr(one),
            repr(one.args),
            repr(getattr(one, "__dict__", "")),
            repr(getattr(one, "object", "")),
        ]
        texts += getattr(one, "__notes__", [])
        texts += traceback.format_exception(one)
        todo += [one.__cause__, one.__context__, *getattr(one, "exceptions", ())]
    return "\n".join(texts)


def clean(text, where=""):
    data = text if isinstance(text, bytes) else str(text).encode("utf-8", "surrogatepass")
    for form in (
        MARK.encode(),
        MARK.encode("utf-16-le"),
        MARK.encode().hex().encode(),
        str(COUNT).encode(),
        f"{COUNT:,}".encode(),
    ):
        assert form not in data, where


def boom():
    raise ValueError(MARK)


def chained():
    try:
        raise KeyError(MARK)  # noqa: TRY301
    except KeyError as error:
        raise RuntimeError("later") from error


def noted():
    error = ValueError("noted")
    error.add_note(MARK)
    raise error


def panics():
    raise pl.exceptions.PanicException(MARK)


def panics_in_rust():
    pl.DataFrame({"a": [MARK]}).select(pl.col("a").map_elements(lambda x: [][x], return_dtype=pl.Int64))


def casts():
    pl.DataFrame({"a": [MARK]}).select(pl.col("a").cast(pl.Int64))


def decodes():
    MARK.encode().__add__(b"\xff").decode()


def overflows():
    Batch.of(pl.DataFrame({"a": [MARK]}), wpinq.schema.Schema.of(b=wpinq.schema.Kind.TEXT))


def interrupts():
    raise KeyboardInterrupt(MARK)


def exits():
    raise SystemExit(MARK)


def warns():
    warnings.warn(MARK, stacklevel=1)
    raise ValueError(MARK)


FAILURES = [boom, chained, noted, panics, panics_in_rust, casts, decodes, overflows, interrupts, exits]
PLACES = {
    "a traced function": (Columnar, "apply"), "an exchange": (shards, "split"), "taking in": (Slices, "absorb"),
    "shaving": (Slices, "emit"), "shaving ranges": (RangedSlices, "emit"), "a histogram": (Histogram, "__init__"),
    "counting": (Histogram, "absorb"), "adding up": (Histogram, "merge"), "a digest": (Histogram, "content"),
    "a look-up": (Histogram, "lookup"), "a look-up of one": (Histogram, "weight"),
}  # fmt: skip


def ask(tmp_path):
    """A plan that passes every place, over records with the marker; the marker is the bin that is asked."""
    views = wpinq.protect(
        [("ann", MARK), ("bob", MARK)], budget=10, columns={"user": str, "page": str}, ledger=tmp_path / "ledger",
        version=str(len(list(tmp_path.iterdir()))) + os.urandom(4).hex(),
    )  # fmt: skip
    pages = views.map(lambda user, page: page.lower())
    m = pages.shave().measure("0.01")
    m.beside = wpinq.degrees.sequence(pages).measure("0.01")  # it runs with the other, while somebody holds it
    m.plain = pages.measure("0.01")  # what no keyed step counts is counted in parts, and added up
    return m


@pytest.fixture
def broken(monkeypatch):
    def call(place, failure):
        owner, name = PLACES[place]
        raw = vars(owner)[name]

        def instead(*_, **__):
            return failure()

        new = classmethod(instead) if isinstance(raw, classmethod) else instead
        monkeypatch.setattr(owner, name, new)
        if owner is shards and installed():
            from wpinq.core.engines.bytewax import flow

            monkeypatch.setattr(flow, "split", new)

    return call


@thin(5)
@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.__name__)
@pytest.mark.parametrize("place", PLACES)
def test_steps_that_fail_say_nothing(place, failure, broken, tmp_path, capfd, caplog, recwarn, monkeypatch):
    if place in ("an exchange", "adding up") and not installed():
        pytest.skip("needs bytewax: a plain loop has no such step")
    monkeypatch.setattr(Lowered, "stacked", False)  # which the loop would run
    caplog.set_level(logging.DEBUG)
    m = ask(tmp_path)
    if place == "a histogram":
        m.observe((MARK, 1))  # so that only later ones fail
        m = ask(tmp_path)
    broken(place, failure)
    with pytest.raises(BaseException) as caught:
        m.observe((MARK, 1))
        m.observe_many([(MARK, 1)])
        m.beside.observe(1)  # what fails in its plan alone
        m.plain.observe(MARK)
    clean(told(caught.value))
    expected = {interrupts: KeyboardInterrupt, exits: SystemExit}.get(failure, wpinq.WpinqError)
    assert isinstance(caught.value, expected)
    out, err = capfd.readouterr()
    clean(out + err + caplog.text + "".join(str(one.message) for one in recwarn))
    for path in tmp_path.iterdir():
        clean(path.read_bytes(), path)


def in_a_process(script, *words, backtrace="1"):
    environment = {
        **os.environ, "RUST_BACKTRACE": backtrace, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]),
        "POLARS_VERBOSE": "0",
    }  # fmt: skip
    command = [sys.executable, "-X", "faulthandler", "-c", script, *map(str, words)]
    return processes.run(command, capture_output=True, env=environment, timeout=120, check=False)


EVERYTHING = f"""
import sys, traceback, pathlib
sys.path.insert(0, {str(Path(__file__).parent)!r})
import test_leaks as t
t.Lowered.stacked = False  # which the loop would run
count = 0
for place, (owner, name) in t.PLACES.items():
    for failure in t.FAILURES:
        m = t.ask(pathlib.Path(sys.argv[1]))
        raw = vars(owner)[name]
        def instead(*_, failure=failure, **__): return failure()
        setattr(owner, name, classmethod(instead) if isinstance(raw, classmethod) else instead)
        try:
            m.observe((t.MARK, 1))
            m.plain.observe(t.MARK)
        except BaseException:
            traceback.print_exc()
            count += 1
        finally:
            setattr(owner, name, raw)
print("failed", count)
"""


@deep
@pytest.mark.slow
def test_what_the_process_writes_says_nothing(tmp_path):
    """bytewax's own panic text and Rust's backtraces, with every step failing in every way, and Python's tracebacks."""
    done = in_a_process(EVERYTHING, tmp_path)
    assert int(done.stdout.split()[-1]) > 80, done.stderr
    assert b"Traceback" in done.stderr
    clean(done.stdout + done.stderr)


def loud(user):
    print(MARK)
    print(user, MARK, file=sys.stderr)
    logging.getLogger("x").critical(MARK)
    warnings.warn(MARK, stacklevel=1)
    raise ValueError(MARK)


def test_functions_that_fail_or_talk_say_nothing(tmp_path, capfd, caplog):
    views = wpinq.protect([(MARK, MARK)], budget=10, columns={"user": str, "page": str}, ledger=tmp_path / "ledger")
    for function in (
        loud,
        lambda user: [][user],
        lambda user: [int(user)],
        lambda user: user.nothing if user else user,
        lambda user: {}[user],
    ):
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            assert isinstance(views.map(function).measure("0.1").observe("q"), int)
            assert isinstance(views.filter(function).measure("0.1").observe((MARK, "q")), int)
        clean("".join(str(one.message) for one in warned))
    out, err = capfd.readouterr()
    clean(out + err + caplog.text)


def damaged(path, kind):
    """A file of views with the marker in it, and something wrong."""
    text = f"user,page\n{MARK},{MARK}\n" * 50
    if kind == "gzip cut":
        path = path.with_suffix(".csv.gz")
        path.write_bytes(gzip.compress((text * 50).encode())[:-40])
    elif kind == "gzip bytes":
        path = path.with_suffix(".csv.gz")
        body = bytearray(
            gzip.compress(("user,page\n" + "".join(f"{MARK}{i},{i * 7919}\n" for i in range(9999))).encode())
        )
        body[len(body) // 2] ^= 255
        path.write_bytes(bytes(body))
    elif kind.startswith("parquet"):
        path = path.with_suffix(".parquet")
        pl.DataFrame({"user": [f"{MARK}{i}" for i in range(999)], "page": [MARK] * 999}).write_parquet(path)
        body = bytearray(path.read_bytes())
        if kind == "parquet page":
            body[8:400] = os.urandom(392)
        elif kind == "parquet footer":
            body[-400:-8] = os.urandom(392)
        path.write_bytes(bytes(body[: len(body) // 2] if kind == "parquet cut" else body))
    elif kind == "header not utf-8":
        path.write_bytes(MARK.encode() + b"\xff,page\nann,home\n")
    elif kind == "header quotes":
        path.write_bytes(b'"' + MARK.encode() + b",page\nann,home\n")
    elif kind == "nul":
        path.write_bytes(b"\0" + text.encode())
    else:
        path.write_text(text)
    return path


KINDS = [
    "gzip cut", "gzip bytes", "parquet page", "parquet footer", "parquet cut", "header not utf-8", "header quotes",
    "nul",
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files_say_nothing(kind, tmp_path, capfd):
    path = damaged(tmp_path / "views.csv", kind)
    with pytest.raises(wpinq.WpinqError) as caught:
        for columns in (None, {"user": int}):
            views = wpinq.protect(path, budget=10, columns=columns, ledger=tmp_path / f"ledger {columns}")
            views.measure("0.1").observe((MARK, MARK) if columns is None else (1, MARK))
    shown = str(caught.value) + repr(caught.value) + "".join(traceback.format_exception(caught.value))
    clean(shown)
    clean("".join(capfd.readouterr()))


def test_no_error_of_a_source_keeps_the_bytes_that_it_met(tmp_path):
    """`raise ... from None` leaves the decoder's error, with the line in it, in `__context__`."""
    with pytest.raises(wpinq.SourceError) as caught:
        wpinq.protect(damaged(tmp_path / "views.csv", "header not utf-8"), budget=1)
    clean(told(caught.value))


def test_a_file_that_changes_or_vanishes_says_nothing(tmp_path):
    for change in (Path.unlink, functools.partial(Path.write_text, data=MARK), lambda path: path.chmod(0)):
        path = tmp_path / "views.csv"
        path.write_text(f"user,page\n{MARK},{MARK}\n")
        m = wpinq.protect(path, budget=10, ledger=tmp_path / "ledger").measure("0.1", name=os.urandom(4).hex())
        change(path)
        if os.geteuid() == 0 and path.exists() and path.stat().st_mode & 0o777 == 0:
            path.chmod(0o600)
            continue  # root reads everything
        with pytest.raises(wpinq.SourceError) as caught:
            m.observe((MARK, MARK))
        clean(told(caught.value))
        path.unlink(missing_ok=True)


def test_wrong_bins_and_amounts_say_nothing_of_the_data(tmp_path):
    views = wpinq.protect([(MARK, 7)] * 50, budget=1, columns={"user": str, "n": int}, ledger=tmp_path / "ledger")
    m = views.measure("0.1")
    m.observe((MARK, 7))
    for bins in ([5], [("a", "b")], [(1, 2, 3)], 5, "ab", [(b"a", 1)], [("a", 2**70)], [("a", 0.5)], [("\ud800", 1)]):
        with pytest.raises(wpinq.BinError) as caught:
            m.observe_many(bins)
        clean(told(caught.value))
    for wrong in (lambda: views.measure(2), lambda: views.measure(0), lambda: views.measure("0.1", mechanism="x"),
                  lambda: views.map(lambda a, b, c: a), lambda: views.filter(pl.col("user").max() == "a"),
                  lambda: views.filter(pl.col("nothing") == 1), lambda: views.shave(0)):  # fmt: skip
        with pytest.raises(wpinq.WpinqError) as caught:
            wrong()
        clean(told(caught.value))


def test_nothing_shown_pickled_or_kept_holds_a_record(tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    path = tmp_path / "views.csv"
    path.write_text("user,page\n" + f"{MARK},{MARK}\n" * COUNT)
    views = wpinq.protect(path, budget=10)
    pages = views.map(lambda page: page)
    measured = [views.measure(1), pages.measure(1), pages.shave().measure(1), wpinq.degrees.cdf(pages).measure(1)]
    for m, one in zip(measured, [(MARK, MARK), MARK, (MARK, 1), 1], strict=True):
        m.observe(one)
        again = wpinq.protect(path, budget=10)
        for thing in (
            m,
            m.node,
            m.key_owner,
            m.key_owner.reader,
            m.key_owner.ledger,
            m.key_owner.ledger.secret,
            m._histogram,
            m._words,
            again,
        ):
            clean(repr(thing) + str(thing) + f"{thing}", thing)
        for part in m.node.inputs:
            clean(repr(part))
        for out in (pickle.dumps, copy.copy, copy.deepcopy):
            for thing in (m, m.key_owner.ledger, m.key_owner.ledger.secret, m.node):
                with pytest.raises(TypeError) as caught:
                    out(thing) if thing is not m.node else pickle.dumps(thing)
                clean(told(caught.value))
    clean(caplog.text)
    for kept in tmp_path.iterdir():
        if kept != path:
            clean(kept.read_bytes(), kept)
    with pytest.raises(TypeError) as caught:
        pickle.dumps(views)
    clean(told(caught.value))


COMMANDS = [
    ["degrees", "FILE", "--budget", "0.2"],
    ["degrees", "FILE", "--budget", "0.2", "--of", "nothing"],
    ["degrees", "FILE", "--budget", "zero"],
    ["degrees", "FILE", "--budget", "0.2", "--columns", "user:int,page:int"],
    ["run", "page_views", "FILE", "--budget", "1", "--observe", "page_views=a,b"],
    ["run", "page_views", "FILE", "--budget", "0.01", "--observe", "page_views=a"],
    ["run", "page_views", "FILE", "--budget", "1", "--observe", "page_views=a:b:c"],
    ["run", "page_views", "BAD", "--budget", "1", "--observe", "page_views=a"],
    ["degrees", "BAD", "--budget", "0.2"],
    ["check", "BAD"],
    ["check", "FILE", "--columns", "user,page:int"],
    ["ledger", "show", "LEDGER"], ["ledger", "verify", "LEDGER"], ["ledger", "show", "LEDGER", "--json"],
    ["ledger", "show", "FILE"], ["ledger", "verify", "BAD"],
    ["explain", "page_views"], ["nothing"], ["run"],
]  # fmt: skip


@pytest.mark.slow
def test_commands_say_nothing(tmp_path):
    """Every command, right and wrong, in one process; `check` is for the curator and shows positions, never values."""
    path = tmp_path / "views.csv"
    path.write_text("user,page\n" + f"{MARK},{MARK}\n" * COUNT)
    bad = damaged(tmp_path / "bad.csv", "gzip bytes")
    places = {"FILE": path, "BAD": bad, "LEDGER": f"{path}.ledger"}
    lines = [[str(places.get(word, word)) for word in command] for command in COMMANDS]
    script = (
        "import sys, wpinq.apps.cli\n"
        f"for line in {lines!r}:\n"
        "    print('$', line[0], 'gave', wpinq.apps.cli.main(line))\n"
        "    sys.stdout.flush()\n"
    )
    done = in_a_process(script)
    assert done.stdout.count(b"$ ") == len(COMMANDS), done.stderr.decode()[-2000:]
    for line in (done.stdout + b"\n" + done.stderr).splitlines():
        if str(COUNT).encode() in line or f"{COUNT:,}".encode() in line:
            assert b"records of" in line or b"rows dropped" in line or b"no integer" in line or "│".encode() in line, (
                line
            )
        else:
            clean(line)
    for kept in tmp_path.iterdir():
        if kept not in (path, bad):
            clean(kept.read_bytes(), kept)
