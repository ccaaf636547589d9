"""The recipes of the documentation, from the first command to the next month: each as it stands, with its own paths."""

import datetime as dt
import gzip
import re
import subprocess
from pathlib import Path

import polars as pl
import pytest

from tests.copied_commands import commands
from tests.depth import deep
from tests.servers import postgres

DOCUMENTS = Path(__file__).parents[2] / "wpinq" / "docs"
ROOT = DOCUMENTS.parents[1]


class Machine:
    """A directory that stands for a machine; what a recipe says is done in it."""

    def __init__(self, home, recipe, **paths):
        self.home, self.paths = home, paths
        self.text = (DOCUMENTS / "recipes.md").read_text().partition(f"\n## {recipe}\n")[2]

    def block(self, language):
        found = re.search(rf"^```{language}\n(.*?)^```", self.text, re.DOTALL | re.MULTILINE)[1]
        for path, own in self.paths.items():
            found = found.replace(path, str(own))
        return found

    def shell(self, command):
        environment = {"PATH": f"{self.home / 'bin'}:/usr/bin:/bin", "PYTHONPATH": str(ROOT), "COLUMNS": "120"}
        with commands(self.home / "bin"):
            return subprocess.run(["/bin/sh", "-ec", command], capture_output=True, text=True, check=False,
                                  env=environment, cwd=self.home)  # fmt: skip

    def done(self, command):
        ended = self.shell(command)
        assert ended.returncode == 0, ended.stderr
        return ended

    def files(self, *parts):
        found = [path for part in parts for path in (self.home / part).rglob("*") if path.is_file()]
        return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in found}


def last_month():
    first = dt.datetime.now(dt.UTC).date().replace(day=1)
    return (first - dt.timedelta(days=1)).replace(day=1)


def test_monthly_visitors_from_rotated_logs_by_cron(tmp_path):
    month = last_month()
    logs, home = tmp_path / "nginx", tmp_path / "site"
    logs.mkdir()
    home.mkdir()
    (home / "www").mkdir()
    machine = Machine(tmp_path, "Monthly visitors from rotated logs", **{"/var/log/nginx": logs, "/srv/site": home})

    def lines(day, visitors, agent="Mozilla/5.0"):
        line = '10.0.{}.{} - - [{:%d/%b/%Y}:10:00:{:02} +0000] "GET /{}?from=mail HTTP/2" 200 512 "-" "{}"\n'
        return "".join(
            line.format(one // 250, one % 250, day, one % 60, page, agent)
            for one in range(visitors)
            for page in ("", "about", "news")[: 1 + one % 3]
        )

    log = logs / "access.log"
    log.write_text(lines(month - dt.timedelta(days=3), 500))
    log.rename(logs / "access.log.2")
    with gzip.open(logs / "access.log.2.gz", "wb") as file:
        file.write((logs / "access.log.2").read_bytes())
    (logs / "access.log.2").unlink()
    (logs / "access.log.1").write_text(lines(month, 9000) + lines(month, 300, "Googlebot/2.1"))
    log.write_text(lines(month + dt.timedelta(days=20), 12000))
    (home / "visitors.toml").write_text(machine.block("toml"))
    assert 'at = "time"' in machine.block("toml")
    said = machine.done(machine.block("sh")).stdout
    name = f"{month:%Y-%m}"
    assert f"{name}: published, epsilon 1.2" in said
    table = pl.read_csv(home / "out" / name / "visitors.csv")
    truth = {"/": 12000, "/about": 8000, "/news": 4000}
    assert table["page"].to_list() == [*truth], "what no visitor sees is below the threshold, and bots are left out"
    for page, visitors in table.select("page", "visitors").rows():
        assert abs(visitors - truth[page]) < 400  # 20 scales of noise: once in 10^8
    page = (home / "out" / "index.html").read_text()
    assert page.count('class="card"') == 3
    assert "What the bound and the threshold leave out of these numbers: about " in page
    total = pl.read_csv(home / "out" / name / "site.csv")["visitors"][0]
    assert abs(total - 12000) < 200  # as much

    cron = (
        machine.block("crontab").split(" ", 5)[5].replace("rsync -a out/ www:/srv/www/visitors/", "cp -pr out/. www/")
    )
    machine.done(cron)
    before = machine.files("site/out", "site/www", "site/visitors.ledger.published")
    with log.open("a") as file:  # the next month begins
        file.write(lines((month + dt.timedelta(days=40)).replace(day=1), 10))
    log.rename(logs / "access.log.0")  # and the log is rotated
    log.write_text(lines((month + dt.timedelta(days=40)).replace(day=1), 10))
    with gzip.open(logs / "access.log.1.gz", "wb") as file:
        file.write((logs / "access.log.1").read_bytes())
    (logs / "access.log.1").unlink()
    quiet = machine.done(cron)
    assert f"{name}: was published before" in quiet.stdout
    assert (home / "visitors.log").read_text() == ""
    assert machine.files("site/out", "site/www", "site/visitors.ledger.published") == before
    machine.done(f"cd {home} && wpinq publish verify visitors.toml --period {name}")

    with log.open("a") as file:
        file.write(lines(month, 1))
    late = machine.done(cron)
    assert late.stdout == quiet.stdout
    assert machine.files("site/out", "site/www", "site/visitors.ledger.published") == before
    assert f"{name}: records of this period came late" in (home / "visitors.log").read_text()
    status = machine.done(f"cd {home} && wpinq publish status --late visitors.toml").stdout
    assert f"{name}  published  records came late or changed since" in status
    assert "late" not in machine.done(f"cd {home} && wpinq publish status visitors.toml").stdout
    assert machine.shell(f"cd {home} && wpinq publish verify visitors.toml --period {name}").returncode == 5


@deep
@pytest.mark.slow
def test_a_table_of_postgres_each_week(tmp_path):
    adbc = pytest.importorskip("adbc_driver_postgresql.dbapi")
    today = dt.datetime.now(dt.UTC).date()
    monday = today - dt.timedelta(days=today.weekday() + 7)
    home = tmp_path / "shop"
    home.mkdir()
    with postgres() as url, adbc.connect(url) as connection, connection.cursor() as cursor:

        def sql(text):
            cursor.execute(text)
            connection.commit()

        def ordered(at, many):
            sql(f"INSERT INTO orders SELECT i, (ARRAY['north', 'east', 'south', 'west'])[1 + i % 4], 5, '{at}'"
                f" FROM generate_series(1, {many}) AS i")  # fmt: skip

        sql("CREATE TABLE orders (customer int, region text, amount numeric(8, 2), ordered_at timestamptz)")
        ordered(f"{monday} 00:30+02", 400)  # Sunday or Monday in Amsterdam, as summer or winter is
        ordered(f"{monday + dt.timedelta(days=2)} 12:00+00", 1600)
        ordered(f"{monday + dt.timedelta(days=8)} 12:00+00", 800)
        machine = Machine(tmp_path, "A table of PostgreSQL each week", **{
            "postgresql://reader@localhost/shop?table=orders": f"{url}?table=orders", "/srv/shop": home})  # fmt: skip
        (home / "orders.toml").write_text(machine.block("toml"))
        year, week, _ = monday.isocalendar()
        name = f"{year}-W{week:02}"
        assert f"{name}: published, epsilon 1." in machine.done(machine.block("sh")).stdout
        table = pl.read_csv(home / "out" / name / "orders.csv")
        assert table["region"].to_list() == ["north", "east", "south", "west"]
        assert all(abs(number - 400) < 60 for number in table["customers"])
        again = f"cd {home} && wpinq publish run orders.toml"
        before = machine.files("shop")
        assert "was published before" in machine.done(again).stdout
        ordered(f"{monday + dt.timedelta(days=9)} 12:00+00", 500)
        sql(f"DELETE FROM orders WHERE ordered_at > '{monday + dt.timedelta(days=8)} 18:00+00'")
        quiet = machine.done(again)
        assert (quiet.stderr, machine.files("shop")) == ("", before)
        machine.done(f"cd {home} && wpinq publish verify orders.toml --period {name}")
        sql(f"UPDATE orders SET amount = 6 WHERE customer = 7 AND ordered_at < '{monday + dt.timedelta(days=7)}'")
        late = machine.done(again)
        assert (late.stdout, machine.files("shop")) == (quiet.stdout, before)
        assert "came late or changed" in late.stderr
        connection.commit()
