"""`wpinq demo`: each sentence that it prints is true, it needs no extra, and nothing stays behind."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
import time
from math import sqrt
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import processes

from wpinq.apps.cli import main
from wpinq.apps.cli.demo import (
    CALLS,
    DEPARTMENTS,
    GIVEN,
    INITIALS,
    LIMIT,
    NEXT,
    QUERY,
    WIDTH,
    answers,
    bar,
    bound,
    histograms,
    made_up_company,
    right,
    table,
)

ROOT = Path(__file__).parents[2]
WITHOUT = """
import sys
from wpinq.errors import EXTRAS
sys.modules |= {one: None for names in EXTRAS.values() for one in names}
from wpinq.apps.cli import main
sys.exit(main(["demo"]))
"""
FAR = 6
"""Standard deviations beyond which a share is wrong; a false alarm is one in 10^8."""


def told(home, *command):
    """What a command prints in a process of its own, in an empty directory, which must stay empty."""
    places = [home / name for name in ("here", "tmp", "home")]
    for one in places:
        one.mkdir()
    kept = {name: text for name, text in os.environ.items() if not name.startswith("WPINQ")}
    env = {**kept, "TMPDIR": str(places[1]), "HOME": str(places[2]), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, *command], cwd=places[0], env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert [list(one.iterdir()) for one in places] == [[], [], []]
    assert "\x1b" not in done.stdout and max(map(len, done.stdout.splitlines())) <= 80
    return done.stdout


def held(text, seed, words):
    """Check what was printed against the people, the law of the noise and the ledger."""
    company, flat = made_up_company(seed), " ".join(text.split())
    march, april, (name, where, days) = table(company.people), table(company.next_month), company.leaver
    rows = {one: re.search(rf"^{one} +(\d+) +(\d+)$", text, re.MULTILINE).groups() for one in (*DEPARTMENTS, "all")}
    assert rows.pop("all") == (str(sum(march.values())), str(sum(april.values())))
    assert rows == {one: (str(march[one]), str(april[one])) for one in DEPARTMENTS}
    assert (
        f"So {march[where]} - {april[where]} = 1: {name} had more than {LIMIT} sick days. True: it was {days}." in flat
    )
    rest = sum(march.values()) - march[where]
    assert f"the total less the other rows is {rest + march[where]} - {rest} = {march[where]}." in flat

    assert words in flat and "costs epsilon 1 c: geometric noise of scale 1, within 3 with probability 0.95" in flat
    noisy = re.findall(r"^(\w+) +(-?\d+) ± 3 +(\d+) +#*-*\|-*$", text, re.MULTILINE)
    assert [(one, int(exact)) for one, _, exact in noisy] == list(march.items())
    assert all(abs(int(value) - march[one]) <= 20 for one, value, _ in noisy)  # of scale 1: one in e^20

    share, limit = (float(one) for one in re.search(r"right for ([\d.]+)% of them.*? is ([\d.]+)%:", flat).groups())
    assert limit == round(100 * bound(1), 1)
    assert abs(share - limit) < 100 * FAR * sqrt(bound(1) * (1 - bound(1)) / 4000)
    assert "1 open people 1 3 charge over ten sick days 1" in flat
    assert "0 of the budget of 1 is left" in flat and "has the same answer, and costs nothing." in flat
    assert "staff: costs epsilon 1, 0 is left of data set 'people'; nothing was charged." in flat
    assert text.splitlines()[-len(NEXT) :] == list(NEXT)


def test_it_is_true_to_the_end_and_leaves_nothing_behind(tmp_path):
    held(told(tmp_path, "-m", "wpinq", "demo", "--seed", "12"), 12, QUERY)


def test_it_needs_no_extra(tmp_path):
    held(told(tmp_path, "-c", WITHOUT), 1, CALLS)


def test_the_best_guess_meets_the_bound_and_does_not_pass_it():
    """Geometric noise is the one for which the bound is met; half of epsilon, or twice as much, would be seen."""
    many, true = 50_000, 3
    for epsilon in (1, 2):
        share = right(answers(true - 1, epsilon, many), answers(true, epsilon, many), true)
        assert abs(share - bound(epsilon)) < FAR * sqrt(bound(epsilon) * (1 - bound(epsilon)) / (2 * many))


def test_no_other_guess_is_better():
    many, true = 50_000, 3
    without, with_ = answers(true - 1, 1, many), answers(true, 1, many)
    shares = [(without < least).mean() / 2 + (with_ >= least).mean() / 2 for least in range(-3, 10)]
    assert max(shares) <= bound(1) + FAR * sqrt(bound(1) * (1 - bound(1)) / (2 * many))
    seen = [[(world == one).mean() for one in range(6)] for world in (without, with_)]
    assert max(max(a / b, b / a) for a, b in zip(*seen, strict=True)) < np.e * 1.15


def test_noise_is_not_of_the_seed():
    assert (answers(5, 1, 200) != answers(5, 1, 200)).any()
    assert made_up_company(3) == made_up_company(3) != made_up_company(4)


def test_of_everybody_who_is_made_up_one_person_is_read():
    for seed in range(50):
        company = made_up_company(seed)
        march, april, (name, where, days) = table(company.people), table(company.next_month), company.leaver
        assert days > LIMIT and company.leaver in company.people
        assert {one: march[one] - april[one] for one in march} == {one: int(one == where) for one in march}
        assert len({one for one, *_ in company.people}) == len(company.people) == len(GIVEN) * len(INITIALS)
        assert len(name) <= len("Quin A.")


def test_an_empty_department_has_a_histogram():
    """A department in which only the leaver is counted: answers below zero are noise as others are."""
    without, with_ = answers(0, 1, 500), answers(1, 1, 500)
    text = histograms(without, with_, 1, "Quin A.")
    assert "-3 or less" in text and "4 or more" in text
    columns = list(zip(*(re.findall(r"([\d.]+)%", row) for row in text.splitlines()[1:]), strict=True))
    assert [round(sum(map(float, column))) for column in columns] == [100, 100]
    assert max(map(len, text.splitlines())) <= WIDTH and bar(-4, -1, 2, 1) == "|--"


def test_its_ledger_is_removed_where_it_is_interrupted(tmp_path, monkeypatch, capsys):
    def interrupted(_):
        assert [one.name[:11] for one in tmp_path.iterdir()] == ["wpinq-demo-"]
        raise KeyboardInterrupt

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("wpinq.apps.cli.demo._attacked", interrupted)
    assert main(["demo"]) == 130
    assert "± 3" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


def test_it_takes_less_than_20_seconds(tmp_path, monkeypatch):
    """Of the processor, for others may have it meanwhile."""
    begun = time.process_time()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert main(["demo"]) == 0
    assert time.process_time() - begun < 20


def test_the_built_tutorial_shows_it(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / ".docs")
    screen = importlib.import_module("demo_screen")
    monkeypatch.setattr(screen, "printed", lambda: "PRINTED\n")
    page = SimpleNamespace(file=SimpleNamespace(src_uri="tutorial.md"))
    tutorial = (ROOT / "wpinq" / "docs" / "tutorial.md").read_text()
    assert "    ```text\n    PRINTED\n    ```\n" in screen.on_page_markdown(tutorial, page)
    assert all(f"({name})" in tutorial for name in screen.SHOWN)
    assert "demo_screen.py" in (ROOT / ".docs" / "mkdocs.yml").read_text()


def test_the_pictures_are_of_what_it_prints_now(monkeypatch):
    """`python .docs/demo_screen.py` writes them anew, and so does a build of the site."""
    monkeypatch.syspath_prepend(ROOT / ".docs")
    screen = importlib.import_module("demo_screen")
    made = screen.pictures()
    assert set(made) == {path.name for path in screen.PICTURES.glob("demo-*.svg")}
    for name, picture in made.items():
        assert (screen.PICTURES / name).read_text() == picture, f"{name} is not what the demo prints now"
        assert ElementTree.fromstring(picture).find("{*}title").text == screen.SHOWN[name][2]
        assert re.search("https?://(?!www.w3.org/2000/svg)", picture) is None


def test_what_comes_next_is_there():
    pages = re.findall(r"wpinq/docs/\S+\.md", " ".join(NEXT))
    assert len(pages) == 2 and all((ROOT / one).exists() for one in pages)


def test_its_help_loads_nothing_that_computes():
    code = (
        "import sys, wpinq.apps.cli.demo\n"
        "print([one for one in ('numpy', 'polars', 'pyarrow', 'sqlglot', 'bytewax') if one in sys.modules])\n"
    )
    assert processes.printed("-c", code, fresh=True) == "[]\n"
