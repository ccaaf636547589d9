"""A release file as an asset of Dagster, materialized by Dagster; run by .ci/tools."""

import pytest

from wpinq.errors import PlanError

dagster = pytest.importorskip("dagster", reason="dagster is not installed; .ci/tools tries it")

from wpinq.tools.dagster import publishing  # noqa: E402

MARKER = ("secret", "record")
FILE = """
[data]
source = "{{date}}.csv"
ledger = "ledger"
unit = {{ column = "user", at_most = 2 }}
[budget]
epsilon = 1
[period]
every = "{every}"
{first}
zone = "Europe/Amsterdam"
[[question]]
name = "views"
counts = ["page"]
keys = ["/a"]
epsilon = "1/2"
plot = false
[[sink]]
directory = "out/{{date}}"
"""
PERIODS = {
    "hour": ('first = "2026-10-25T02"', "2026-10-25T03", "2026-10-25-03:00"),
    "day": ("first = 2026-10-24", "2026-10-25", "2026-10-25"),
    "week": ('first = "2026-W43"', "2026-W44", "2026-10-26"),
    "month": ('first = "2026-09"', "2026-10", "2026-10-01"),
    "year": ('first = "2024"', "2025", "2025-01-01"),
}


@pytest.fixture
def place(tmp_path):
    def made(every="day", first="first = 2026-10-24", names=()):
        for name in names:
            (tmp_path / f"{name}.csv").write_text("user,page\nann,/a\n")
        (tmp_path / "site.toml").write_text(FILE.format(every=every, first=first))
        return tmp_path / "site.toml"

    return made


def materialized(path, key, **more):
    return dagster.materialize([publishing(path, **more)], partition_key=key, raise_on_error=False)


@pytest.mark.parametrize("every", PERIODS)
def test_a_partition_is_a_period(every, place):
    first, name, key = PERIODS[every]
    path = place(every, first, [name])
    done = materialized(path, key)
    (found,) = done.asset_materializations_for_node("site")
    told = {label: one.value for label, one in found.metadata.items()}
    assert told == {"period": name, "done": "published", "epsilon": 0.5, "epsilon left": 0.5, "epsilon in all": 1.0}
    assert (path.parent / "out" / name / "views.csv").exists()


def test_what_is_run_again_is_charged_once_and_events_go_along(place, events):
    pytest.importorskip("openlineage.client")
    path = place(names=["2026-10-25"])
    materialized(path, "2026-10-25", openlineage=True)
    (again,) = materialized(path, "2026-10-25", openlineage=True).asset_materializations_for_node("site")
    assert again.metadata["done"].value == "was published before" and again.metadata["epsilon left"].value == 0.5
    assert [one["eventType"] for one in events()] == ["START", "COMPLETE"] * 2


def failure(path):
    failed = materialized(path, "2026-10-25")
    (event,) = [one for one in failed.all_events if one.event_type_value == "STEP_FAILURE"]
    return event.step_failure_data, dagster.serialize_value(event)


def test_a_refusal_is_one_sentence(place):
    path = place(names=["2026-10-24", "2026-10-25", "2026-10-26"])
    for key in ("2026-10-24", "2026-10-26"):
        assert materialized(path, key).success
    data, _ = failure(path)
    assert "nothing was charged" in data.user_failure_data.description and data.error.cause is None


def test_what_a_library_says_of_a_record_is_not_kept(place, monkeypatch):
    """Dagster keeps tracebacks, with what errors were raised from."""

    def run(*_, **__):
        raise RuntimeError(" ".join(MARKER)) from ValueError(" ".join(MARKER))  # so that no line of code holds it

    path = place(names=["2026-10-25"])
    monkeypatch.setattr("wpinq.apps.publish.release.Publisher.run", run)
    data, text = failure(path)
    assert "RuntimeError" in data.user_failure_data.description and " ".join(MARKER) not in text


def test_the_block_of_the_page_defines_the_asset(place, block, monkeypatch):
    monkeypatch.chdir(place().parent)
    names = {}
    exec(block("Dagster"), names)
    assert [one.to_user_string() for one in names["defs"].resolve_all_asset_keys()] == ["site"]


def test_a_release_without_a_first_period_has_no_partitions(place):
    with pytest.raises(PlanError, match="first"):
        publishing(place(first=""))
