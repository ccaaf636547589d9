"""A ledger that is made where its secret could be committed or removed by others says so, once, and works."""

import warnings

import pytest

import wpinq


def made(place, **more):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        views = wpinq.protect([("ann",)], columns={"user": str}, budget=1, ledger=place, version="1", **more)
        assert views.left == 1
    return [str(one.message) for one in said]


@pytest.mark.parametrize("worktree", [False, True], ids=["clone", "worktree"])
def test_in_a_git_work_tree(tmp_path, worktree):
    place = tmp_path / "deep" / "er"
    place.mkdir(parents=True)
    assert made(place / "outside") == []
    (tmp_path / ".git").write_text("gitdir: elsewhere") if worktree else (tmp_path / ".git").mkdir()
    (line,) = made(place / "views.ledger")
    assert line.startswith(
        f"ledger {place / 'views.ledger'}: it lies in the git work tree {tmp_path}; whoever gets its"
    )
    assert line.endswith("Add views.ledger* to .gitignore, or give ledger= another place.")
    assert made(place / "views.ledger") == [], "said when it is made"
    assert len(made(place / "other.ledger")) == 1


@pytest.mark.parametrize(
    ("where", "pattern", "ignored"),
    [
        (".", "more.ledger*", True),
        ("deep", "more*", True),
        (".", "/deep/", True),
        (".", "more.ledger", False),
        (".", "#more.ledger*", False),
        (".", "!more.ledger*", False),
        (".", "", False),
    ],
)
def test_what_is_ignored_is_not_said(tmp_path, where, pattern, ignored):
    (tmp_path / ".git").mkdir()
    (tmp_path / "deep").mkdir()
    (tmp_path / where / ".gitignore").write_text(f"*.pyc\n{pattern}\n")
    assert bool(made(tmp_path / "deep" / "more.ledger")) is not ignored


@pytest.mark.parametrize(("mode", "shared"), [(0o777, True), (0o775, True), (0o1777, False), (0o755, False)])
def test_in_a_folder_that_others_may_write(tmp_path, mode, shared):
    place = tmp_path / "shared"
    place.mkdir()
    place.chmod(mode)
    said = made(place / "L")
    assert [f"others may write into {place}" in line for line in said] == [True] * shared


@pytest.mark.filterwarnings("default")
def test_a_command_says_it_in_one_line(tmp_path, capsys):
    from wpinq.apps.cli import main

    (tmp_path / ".git").mkdir()
    (tmp_path / "v.csv").write_text("user,page\nann,a\n")
    words = ["sql", "SELECT COUNT(*) FROM v", "--from", f"v={tmp_path / 'v.csv'}", "--epsilon", "1", "--budget", "2"]
    assert main(words) == 0
    err = capsys.readouterr().err
    assert (err.startswith("wpinq: ledger "), err.count("\n")) == (True, 1)
    assert main(words) == 0
    assert capsys.readouterr().err == ""
