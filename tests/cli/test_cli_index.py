"""`--index`: commands share the records by person, with the same answers, until they are forgotten."""

import json
from unittest.mock import patch

import pytest

from wpinq.core import kernels
from wpinq.core.runs import people_index

pytestmark = pytest.mark.skipif(kernels.LIB is None, reason="without compiled kernels nothing is indexed")
PEOPLE = ["--unit", "user", "--at-most", "2"]
SQL = "SELECT page, COUNT(*) AS c FROM views GROUP BY page"


def files(place):
    return [path.name for path in place.iterdir() if ".people-" in path.name]


@pytest.mark.parametrize("given", [[], ["--where", "page <> 'news'"]], ids=["all", "where"])
def test_commands_share_it_and_forget_removes_it(wpinq, views, tmp_path, given):
    (tmp_path / "keys.csv").write_text("home\nnews\n")
    asked = ["sql", SQL, "--from", f"views={views}", *PEOPLE, "--epsilon", "1", "--keys", tmp_path / "keys.csv", *given]
    found = []
    for number, index in enumerate((["--index"], ["--index"], [])):
        if number == 1:
            with patch.object(people_index, "parts", side_effect=AssertionError("made anew")):
                done = wpinq(*asked, *index, "--json", tmp_path / f"{number}.json")
        else:
            done = wpinq(*asked, *index, "--budget", "9", "--json", tmp_path / f"{number}.json")
        assert done.code == 0, done
        found.append(json.loads((tmp_path / f"{number}.json").read_text())["rows"])
    assert found[0] == found[1] == found[2]
    (name,) = files(tmp_path)
    assert name.startswith("views.csv.ledger.people-")
    with patch.object(people_index, "parts", side_effect=AssertionError("made anew")):
        made = wpinq(
            "degrees", views, "--of", "page", *PEOPLE, "--budget", "1", "--index", "--json", tmp_path / "d.json"
        )
        assert made.code == 0, made
    done = wpinq("ledger", "forget", f"{views}.ledger")
    assert (done.code, done.out) == (0, f"{views}.ledger: 1 file of records by person removed.\n")
    assert files(tmp_path) == []
    assert "0 files" in wpinq("ledger", "forget", f"{views}.ledger").out


def test_a_script_uses_it_too(wpinq, views, loud, tmp_path):
    found = []
    for number, index in enumerate((["--index"], ["--index"], [])):
        out = tmp_path / f"{number}.json"
        done = wpinq(
            "run", loud, views, "--budget", "300", *PEOPLE, *index, "--observe", "pages=home,news", "--json", out
        )
        assert (done.code, len(files(tmp_path))) == (0, 1), done
        found.append(json.loads(out.read_text())["pages"]["values"])
    assert found[0] == found[1] == found[2]


def test_where_it_is_of_no_use_it_is_refused(wpinq, views, loud, tmp_path):
    asked = ["run", loud, views, "--budget", "300", "--index"]
    assert "(--unit)" in wpinq(*asked).refused()
    assert "one process" in wpinq(*asked, *PEOPLE, "--processes", "2").refused()
    assert "--index" in wpinq(*asked, *PEOPLE, "--recover", tmp_path / "kept").refused()
    assert "--index" in wpinq(*asked, *PEOPLE, "--follow").refused()
    assert {path.name for path in tmp_path.iterdir()} == {"views.csv", "loud.py"}
