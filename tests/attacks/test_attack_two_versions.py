"""Attacks by two versions of one data set: whoever sees all that leaves must not learn whether they hold the same.

Each attack runs in two worlds. In one the second version holds what the first one does, in the other one record more,
which is what a neighbour differs by. Both are charged for under names of their own. All that leaves is compared: it may
differ in noisy numbers only, and these must be drawn anew, for otherwise two tables that agree tell that nobody came.
"""

import gzip
import json
import re
import sqlite3
import warnings
from contextlib import closing

import polars as pl
import pytest
from depth import thin

import wpinq
from wpinq.apps.cli import main
from wpinq.apps.publish import Release
from wpinq.core.ledger import Ledger
from wpinq.core.ledger.budget import Allowance
from wpinq.sources import files

DAYS = ("2026-11-20", "2026-11-21")
BINS = [f"page {number}" for number in range(40)]
NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?(e-?[0-9]+)?")
WORLDS = {"the same": [], "one more": [("alice", "page 1")], "many more": [("bob", "page 2")] * 50}
FORMS = ["csv", "gz", "parquet", "sqlite", "memory", "pattern", "json"]
quiet = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of what is charged for another version


def written(home, day, rows, form):
    """The records of a day in a form; the source."""
    frame = pl.DataFrame([("ann", "page 1"), *rows], schema=["user", "page"], orient="row")
    path = home / f"{day}.{form}"
    if form == "memory":
        return frame
    if form == "pattern":
        (home / day).mkdir()
        frame.write_csv(home / day / "1.csv")
        return str(home / day / "*.csv")
    if form == "parquet":
        frame.write_parquet(path)
    elif form == "json":
        path = path.with_suffix(".jsonl")
        frame.write_ndjson(path)
    elif form == "sqlite":
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("CREATE TABLE views (user TEXT, page TEXT)")
            connection.executemany("INSERT INTO views VALUES (?, ?)", frame.rows())
        return f"sqlite:{path}?table=views"
    elif form == "gz":
        path = home / f"{day}.csv.gz"
        path.write_bytes(gzip.compress(frame.write_csv().encode(), mtime=0))
    else:
        frame.write_csv(path)
    return str(path)


def leaves(home, more, form, unit):
    """All that two days' answers say of themselves, their noisy numbers, and what the ledger shows."""
    home.mkdir()
    seen, noisy = [], []
    for day, rows in zip(DAYS, ((), more), strict=True):
        columns = {"columns": {"user": "text", "page": "text"}} if form == "json" else {}
        views = wpinq.protect(written(home, day, rows, form), budget=9, ledger=home / "L", name="views", version=day,
                              unit=unit, **columns)  # fmt: skip
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            pages = views.map("page").measure(epsilon="0.1", name="pages")
        table = wpinq.sql("SELECT COUNT(*) AS n FROM views", {"views": views}, epsilon="0.1")
        noisy.append(pages.observe_many(BINS).tolist())
        about = {key: value for key, value in table.about.items() if key != "date"}
        seen.append((repr(views), repr(pages), str(pages.quote), [str(one.message) for one in said], about,
                     str(views.budget), views.left))  # fmt: skip
    ledger = Ledger.existing(home / "L")
    rows = [(one.number, one.kind, one.label, one.version, one.epsilon) for one in ledger.entries()]
    return seen, rows, str(Allowance.capped(ledger)), noisy


@thin(4)
@quiet
@pytest.mark.parametrize("unit", ["records", "people"])
@pytest.mark.parametrize("form", FORMS)
def test_what_answers_prices_and_the_ledger_say(tmp_path, form, unit):
    who = None if unit == "records" else wpinq.users("user", at_most=3)
    worlds = {name: leaves(tmp_path / name, more, form, who) for name, more in WORLDS.items()}
    *_, first = worlds.values()
    for *said, noisy in worlds.values():
        assert said == list(first[:-1]), "nothing but numbers differs"
        assert noisy[0] != noisy[1], "each day has noise of its own"


@quiet
@pytest.mark.parametrize("more", WORLDS.values(), ids=WORLDS)
def test_the_noise_of_a_version_tells_nothing_of_another_s(tmp_path, more):
    """Two days that hold the same must not agree more often than two that do not: the noise follows from the name."""
    views = [
        wpinq.protect([("ann", "x"), *rows], budget=10**6, ledger=tmp_path / "L", columns=("user", "page"), version=day)
        for day, rows in zip(DAYS, ((), more), strict=True)
    ]
    nobody = [f"nobody {number}" for number in range(2_000)]  # bins that hold nothing: what is observed is noise
    one, other = (each.map(pl.col("page")).measure(epsilon=1).observe_many(nobody) for each in views)
    agree = (one == other).mean()
    assert 0.15 < agree < 0.35, "two draws of a geometric of scale 1 agree with probability 0.23"


SITE = {
    "data": {"source": "views/{date}.csv", "columns": {"user": "text", "page": "text"}, "ledger": "ledger",
             "unit": {"column": "user", "at_most": 3}},
    "budget": {"epsilon": 30},
    "question": [{"name": "views", "sql": "SELECT page, COUNT(*) AS views FROM data GROUP BY page",
                  "keys": ["a", "b"], "epsilon": "0.1"}],
    "sink": [{"directory": "out/{date}", "formats": ["csv", "json", "parquet"]}, {"sqlite": "out.sqlite"}],
}  # fmt: skip


def published(home, more):
    """Every file that publishing two days leaves for others, with its noisy numbers struck out, and exit codes."""
    (home / "views").mkdir(parents=True)
    site = Release(SITE, "site", home)
    for day, rows in zip(DAYS, ((), more), strict=True):
        lines = "".join(f"{user},{page}\n" for user, page in [("ann", "a"), *rows])
        (home / "views" / f"{day}.csv").write_text(f"user,page\n{lines}")
        assert site.run(day).done == "published"
        site.run(day)  # once more, which is free
    codes = re.compile(r"[0-9a-f]{32,}")  # digests of noisy numbers
    at = re.compile(r"20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:+.]+")
    texts = {}
    for path in sorted((home / "out").rglob("*")):
        if path.suffix in (".md", ".html") or path.name in ("evidence.json", "registry.json"):
            text = at.sub("", codes.sub("", path.read_text()))
            if path.suffix != ".json":  # pictures and tables of noisy numbers: what is left are the words
                text = re.sub(r"[-−]?[0-9][0-9,.]*", "", re.sub(r"(?s)<svg.*?</svg>", "", text))
            texts[str(path.relative_to(home))] = re.sub(r"[ -]+", " ", text)
        else:
            texts[str(path.relative_to(home))] = ""
    rows = [(one.kind, one.label, one.version, one.epsilon) for one in Ledger.existing(home / "ledger").entries()]
    tables = [json.loads((home / "out" / day / "views.json").read_text())["rows"] for day in DAYS]
    return texts, rows, [one.stage for one in site.status()], tables


@quiet
def test_what_is_published(tmp_path):
    """A code of the version stood in the evidence, and the number of the ledger's rows followed from it."""
    worlds = [published(tmp_path / name, more) for name, more in WORLDS.items()]
    for *said, tables in worlds:
        assert said == list(worlds[0][:-1])
        assert tables[0] != tables[1]


@pytest.mark.filterwarnings("default::RuntimeWarning")
def test_a_published_period_ends_alike_whether_its_records_changed_or_not(tmp_path, capfd, monkeypatch):
    """Who starts a publication sees its exit code, and its files; the reason is for the curator alone."""
    monkeypatch.setattr(files, "TICK", 0)  # else how long ago a file was written decides whether its state is noted
    ends = []
    for more in ("", "alice,a\n"):
        home = tmp_path / f"world {len(more)}"
        (home / "views").mkdir(parents=True)
        path = home / "views" / "2026-11-20.csv"
        path.write_text("user,page\nann,a\n")
        (home / "site.toml").write_text(
            '[data]\nsource = "views/{date}.csv"\nledger = "ledger"\n[budget]\nepsilon = 3\n[[question]]\nname = "v"\n'
            'counts = ["page"]\nkeys = ["a"]\nepsilon = 1\n[[sink]]\ndirectory = "out/{date}"\n'
        )
        command = ["publish", "run", str(home / "site.toml"), "--period", "2026-11-20"]
        assert main(command) == 0
        path.write_text(path.read_text() + more)
        capfd.readouterr()
        code = main(command)
        said = capfd.readouterr()
        assert ("changed since it was published" in said.err) == bool(more)
        left = {str(one.relative_to(home)) for one in home.rglob("*") if one.is_file()}
        ends.append((code, said.out.replace(str(home), ""), left, len(Ledger.existing(home / "ledger").entries())))
    assert ends[0] == ends[1]


COMMANDS = {
    "run": lambda path: ["run", "page_views", path, "--observe", "page_views=page 1"],
    "degrees": lambda path: ["degrees", path, "--of", "page", "--split", "0.5"],
    "sql": lambda path: ["sql", "SELECT COUNT(*) AS n FROM v", "--from", f"v={path}", "--epsilon", "1"],
}


@quiet
@pytest.mark.parametrize("name", COMMANDS)
def test_the_command_line_says_the_name_of_a_version_and_no_code(tmp_path, name, capfd):
    said = set()
    for world, rows in WORLDS.items():
        home = tmp_path / world
        home.mkdir()
        wpinq.protect([], columns=("user", "page"), budget=9, ledger=home / "L", name="views")
        for day, more in zip(DAYS, ((), rows), strict=True):
            path, out = home / f"{day}.csv", home / f"{day}.json"
            path.write_text("user,page\nann,page 1\n" + "".join(f"{user},{page}\n" for user, page in more))
            given = ["--ledger", str(home / "L"), "--name", "views", "--data-version", day]
            given += ["--budget", "1"] if name == "degrees" else []
            assert main([*COMMANDS[name](str(path)), *given, "--json", str(out)]) == 0
            assert f'"version": "{day}"' in out.read_text()
        err = capfd.readouterr().err
        said.add(NUMBER.sub("", err.replace(str(home), "")))
    assert len(said) == 1
