"""Bad input and sinks that refuse: an exit code and one clear line each, nothing charged, nothing half published."""

import datetime as dt
import resource
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from depth import deep

from tests.publish.test_release import NOW, PAGES, given, release, wrote
from tests.servers import postgres
from wpinq.apps.cli import main
from wpinq.apps.publish import Release
from wpinq.apps.publish.file.declared import Data
from wpinq.apps.publish.file.periods import Period
from wpinq.apps.publish.file.reading import decode
from wpinq.apps.publish.input import Opening
from wpinq.errors import PlanError, SourceError

DAY = "2026-11-21"
FILE = """
[data]
source = "views/{date}.csv"
unit = { column = "user", at_most = 3 }
ledger = "ledger"
[budget]
epsilon = 5
[period]
every = "EVERY"
[[question]]
name = "views"
counts = ["page"]
keys = ["/p0", "/p1"]
epsilon = 3
plot = false
[[sink]]
directory = "out/{date}"
"""
OLD = ("2024-03-01", "2024-03-02")


@pytest.fixture
def told(tmp_path, capsys):
    """Runs `wpinq publish` over two old days, and gives its exit code and its lines."""
    (tmp_path / "views").mkdir()
    for day in OLD:
        (tmp_path / "views" / f"{day}.csv").write_text("user,page\nu1,/p0\nu2,/p1\n")

    def run(command, *words, change=("", ""), every="day"):
        path = tmp_path / "site.toml"
        path.write_text(FILE.replace(*change).replace("EVERY", every) if change[0] else FILE.replace("EVERY", every))
        code = main(["publish", command, str(path), *words])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return code, out.splitlines(), err.splitlines()

    return run


@pytest.mark.parametrize(
    ("change", "period", "said"),
    [
        (('ledger = "ledger"', 'ledgers = "ledger"'), OLD[0], "'ledger' is"),
        (("epsilon = 5", ""), OLD[0], "[budget] needs epsilon"),
        (("[data]", "[data"), OLD[0], "no TOML"),
        (("", ""), "2024-13-01", "is no day; write it as 2026-11-21"),
        (("", ""), "2024-W10", "is no day; write it as 2024-03-04"),
        (("", ""), "2024-03-09", "no such file"),
        (("", ""), "9998-12-31", "is not over"),
        (("", ""), "9999-12-31", "is no day"),
        (('every = "EVERY"', 'zone = "Mars/Phobos"'), OLD[0], "no zone of time"),
        (('directory = "out/{date}"', 'directory = "site.toml/{date}"'), OLD[0], "cannot be written"),
        (('directory = "out/{date}"', 'directory = "out"'), OLD[0], "write {date} into it"),
        (('directory = "out/{date}"', 'sqlite = "none/out.sqlite"'), OLD[0], "is not there"),
    ],
)
def test_what_cannot_be_is_one_line_and_costs_nothing(told, tmp_path, change, period, said):
    code, out, err = told("run", "--period", period, change=change)
    assert (code, out, len(err)) == (2, [], 1)
    assert said in err[0]
    assert not (tmp_path / "ledger").exists()


def test_an_empty_source_is_told_and_a_header_alone_is_a_quiet_day(told, tmp_path):
    path = tmp_path / "views" / f"{OLD[0]}.csv"
    path.write_text("")
    code, _, err = told("run", "--period", OLD[0])
    assert (code, len(err)) == (2, 1)
    assert not (tmp_path / "ledger").exists()
    path.write_text("user,page\n")
    assert told("run", "--period", OLD[0])[0] == 0


def test_a_plan_without_the_last_file_says_how_another_period_is_named(told, tmp_path):
    code, _, (line,) = told("plan")
    assert code == 2
    assert "no such file. --period plans another period than 20" in line
    assert told("plan", "--period", OLD[0])[0] == 0


@pytest.mark.filterwarnings("default::RuntimeWarning")
def test_exit_codes_of_every_command(told, tmp_path):
    code, out, err = told("backfill", f"{OLD[0]}..{OLD[1]}")
    assert (code, out) == (4, [f"{OLD[0]}: published, epsilon 3."]), "what was published is told, then the budget ends"
    assert len(err) == 1
    assert told("run", "--period", "2024-03", every="month")[0] == 2  # overlaps
    with Release.read(tmp_path / "site.toml")._publisher.register.locked():
        for words in (("run", "--period", OLD[0]), ("backfill", OLD[0]), ("verify", "--period", OLD[0])):
            code, _, err = told(*words)
            assert (code, len(err)) == (75, 1)
            assert "another process is publishing" in err[0]
    assert told("verify", "--period", OLD[0])[0] == 0
    table = tmp_path / "out" / OLD[0] / "views.csv"
    table.write_text(table.read_text() + "/p9,1\n")
    assert told("verify", "--period", OLD[0])[0] == 6
    path = tmp_path / "views" / f"{OLD[0]}.csv"
    path.write_text(path.read_text() + "u3,/p1\n")
    for command, ends in (("run", 0), ("verify", 5)):  # who starts a run may see how it ends
        code, _, err = told(command, "--period", OLD[0])
        assert (code, len(err)) == (ends, 1)


def test_a_clock_that_jumped_back_is_told(told, tmp_path):
    later = dt.datetime.now(dt.UTC) + dt.timedelta(days=2)
    (tmp_path / "site.toml").write_text(FILE.replace("EVERY", "day"))
    Release.read(tmp_path / "site.toml", clock=lambda: later).run(OLD[0])
    code, _, err = told("run", "--period", OLD[1])
    assert (code, len(err)) == (2, 1)
    assert "set the clock" in err[0]


def test_a_directory_that_holds_something_else_stays(told, tmp_path):
    place = tmp_path / "out" / OLD[0]
    place.mkdir(parents=True)
    (place / "mine").write_text("mine")
    code, _, err = told("run", "--period", OLD[0])
    assert (code, len(err)) == (2, 1)
    assert "move it away" in err[0]
    assert not (tmp_path / "ledger").exists()
    assert [path.name for path in place.iterdir()] == ["mine"]
    (place / "mine").unlink()
    place.rmdir()
    assert told("run", "--period", OLD[0])[0] == 0


@pytest.mark.parametrize("sink", [{"directory": "out/{date}"}, {"sqlite": "out.sqlite"}])
def test_a_full_disk_publishes_nothing_and_a_run_after_completes(tmp_path, sink):
    """The limit on the size of files stands for the disk: the system refuses to write beyond it."""
    wrote(tmp_path, 21)
    site = release(tmp_path, sink=[sink])
    (place,) = site._publisher.places
    inner = place.deliver

    def full(edition):
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (500, hard))
        try:
            inner(edition)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    place.deliver = full
    with pytest.raises(SourceError) as error:
        site.run()
    assert "\n" not in str(error.value)
    assert not list((tmp_path / "out").glob("*")), "no draft is left either"
    assert site.status()[-1].stage == "computed"
    place.deliver = inner
    assert site.run().done == "published"
    assert (site.plan().left, site.verify(DAY)) == (27, [])


@pytest.fixture(scope="module")
def server():
    with postgres() as url:
        yield url


@deep
def test_postgres_takes_a_period_whole_and_once(server, tmp_path):
    import adbc_driver_postgresql.dbapi as driver

    def rows(query):
        with driver.connect(server, autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute(query)
            return cursor.fetchall() if query.startswith("SELECT") else []

    for day in (20, 21):
        wrote(tmp_path, day)
    site = release(tmp_path, sink=[{"postgres": server}, {"sqlite": "out.sqlite"}])
    site.run("2026-11-20")
    (place, _), whole = site._publisher.places, "SELECT page, views FROM site_views WHERE period = '2026-11-20'"
    with closing(sqlite3.connect(tmp_path / "out.sqlite")) as base, base:
        assert rows(whole) == base.execute(whole).fetchall()
    assert [page for page, _ in rows(whole)] == PAGES
    edition = site._publisher.edition(site.period("2026-11-20"))
    place.deliver(edition)  # again
    assert len(rows(whole)) == len(PAGES)
    other = edition.tables["views"].with_columns(views=edition.tables["views"]["views"] + 1)
    with pytest.raises(SourceError, match="other answers for 2026-11-20") as error:
        place.deliver(type(edition)("site", edition.period, {"views": other}, edition.files))
    assert "marker" not in str(error.value), "no message shows the password"
    assert site.verify("2026-11-20") == []
    rows("UPDATE site_views SET views = views + 1 WHERE page = '/p2'")
    (found,) = site.verify("2026-11-20")
    assert "site_views" in found

    rows("ALTER TABLE wpinq_published ADD CONSTRAINT odd CHECK (period <> '2026-11-21')")  # the last step is refused
    with pytest.raises(SourceError):
        site.run(DAY)
    assert rows("SELECT 1 FROM site_views WHERE period = '2026-11-21'") == [], "its rows went with the transaction"
    rows("ALTER TABLE wpinq_published DROP CONSTRAINT odd")
    assert site.run(DAY).done == "published"
    assert len(rows("SELECT 1 FROM site_views WHERE period = '2026-11-21'")) == len(PAGES)
    assert (site.plan().left, site.verify(DAY)) == (24, [])
    gone = release(tmp_path, sink=[{"postgres": server.replace("/postgres", "/nowhere")}])
    wrote(tmp_path, 19)
    with pytest.raises(SourceError):
        gone.run("2026-11-19")
    assert site.plan().left == 24


def test_postgres_with_a_table_of_other_columns(server, tmp_path):
    import adbc_driver_postgresql.dbapi as driver

    with driver.connect(server, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE elsewhere_views (period TEXT, pages INT)")
    wrote(tmp_path, 21)
    site = Release(given(sink=[{"postgres": server}]), "elsewhere", tmp_path, clock=lambda: NOW)
    with pytest.raises(
        SourceError, match="table elsewhere_views has other columns than the answers, period, page, views"
    ):
        site.run(DAY)


def test_postgres_killed_in_the_transaction(server, tmp_path):
    """Its own server process ends before the commit: nothing of the period is there, and a run after completes."""
    import adbc_driver_postgresql.dbapi as driver

    wrote(tmp_path, 21)
    site = Release(given(sink=[{"postgres": server}]), "cut", tmp_path, clock=lambda: NOW)
    with driver.connect(server, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE FUNCTION cut() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN"
                       " PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NEW; END$$")  # fmt: skip
        cursor.execute("CREATE TABLE IF NOT EXISTS wpinq_published (release TEXT, period TEXT, digest TEXT,"
                       " PRIMARY KEY (release, period))")  # fmt: skip
        cursor.execute("CREATE TRIGGER cut AFTER INSERT ON wpinq_published FOR EACH ROW EXECUTE FUNCTION cut()")
        with pytest.raises(SourceError) as error:
            site.run()
        assert "\n" not in str(error.value)
        cursor.execute("SELECT count(*) FROM pg_tables WHERE tablename = 'cut_views'")
        assert cursor.fetchall() == [(0,)]
        cursor.execute("DROP TRIGGER cut ON wpinq_published")
    assert site.run().done == "published"
    assert (site.plan().left, site.verify(DAY)) == (27, [])


@pytest.mark.parametrize("given", ["u:word@host/db", "u:w@word@host/db", "u:w/word@host/db", "host/db?password=word"])
def test_no_message_shows_a_password(given):
    """One before the host was cut off up to its first @ or /, and one among the parameters was shown."""
    opening = Opening(Data(source=f"postgresql://{given}", ledger="ledger"), Path())
    assert opening.shown(Period.parse(DAY, "day")) == "postgresql://host/db"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"data": {"unit": {"column": "user", "per": ["page", 1]}}},
         "data.unit.per: write a table such as { key = 1 }, and not a list."),
        ({"question": {"name": "views"}}, "question: write it as [[question]], once for each."),
        ({"data": {"header": "no"}}, "data.header: write true or false, and not text."),
        ({"data": {"processes": 0}}, "data.processes: write a whole number >= 1."),
        ({"stream": {"lateness": "x"}}, "stream.lateness: write a number, and not text."),
        ({"budget": {"epsilon": [1]}}, "budget.epsilon: write a number or text in quotes, and not a list."),
    ],
)  # fmt: skip
def test_a_value_of_another_type_is_told_in_words_of_toml(changes, said):
    asked = [{"name": "a", "counts": ["page"], "epsilon": 1}]
    file = {"data": {"source": "{date}.csv", "ledger": "l"}, "budget": {"epsilon": 1}, "question": asked,
            "sink": [{"directory": "o/{date}"}]}  # fmt: skip
    for name, change in changes.items():
        file[name] = {**file[name], **change} if isinstance(file.get(name), dict) else change
    with pytest.raises(PlanError) as refused:
        decode(file, "site.toml")
    assert str(refused.value) == f"site.toml: {said}"
