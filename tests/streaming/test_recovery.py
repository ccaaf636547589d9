"""`wpinq run --recover`: killed at any moment, exact in the end. Attacks 13, 20 and 42; rule 42."""

import json
import sys
from pathlib import Path

import polars as pl
import processes
import pytest
from depth import deeper, often

import wpinq
from wpinq.apps.cli import main
from wpinq.sources import open_source
from wpinq.sources.recovered import HEAD, forget, recovered

KEY = bytes(range(32))


@pytest.fixture
def views(tmp_path):
    path = tmp_path / "views.csv"
    lines = "".join(f"user{i % 97},marker{i * i % 1009}\n" for i in range(20_000))
    path.write_text("user,page\n" + lines)
    return path


def counts(reader, columns=("page",), share=(0, 1)):
    frames = [
        frame if "\0weight" in frame.columns else frame.with_columns(pl.lit(1).alias("\0weight"))
        for frame in reader.batches(columns, share=share)
    ]
    if not frames:
        return {}
    total = pl.concat(frames).group_by(columns).agg(pl.col("\0weight").sum())
    return {row[:-1]: row[-1] for row in total.iter_rows()}


def test_attack_42_parts_are_read_once_and_counted_once(views, tmp_path, monkeypatch):
    """Stopped after any number of parts and started again, in any shares, the records are those of the source."""
    expected = counts(open_source(views))
    for stop in (0, 1, 7, 16):
        place = tmp_path / f"keep {stop}"
        kept = recovered(open_source(views), place, KEY)
        reading = kept.batches(("page",))
        for _ in range(stop):
            next(reading)
        reading.close()
        read = []
        again = recovered(open_source(views), place, KEY)
        monkeypatch.setattr(type(again.reader), "batches", _spied(type(again.reader).batches, read))
        halves = [counts(again, share=(i, 2)) for i in (0, 1)]
        monkeypatch.undo()
        assert len(read) == again.parts - stop, "a kept part is not read again"
        total = {key: halves[0].get(key, 0) + halves[1].get(key, 0) for key in {**halves[0], **halves[1]}}
        assert total == expected
        assert counts(again, columns=("user", "page")) == counts(open_source(views), columns=("user", "page"))


def _spied(function, calls):
    def batches(*args, **kwargs):
        calls.append(kwargs["share"])
        return function(*args, **kwargs)

    return batches


def test_what_is_kept_holds_no_names_and_is_its_owners(views, tmp_path):
    place = tmp_path / "keep"
    kept = recovered(open_source(views), place, KEY)
    counts(kept)
    assert place.stat().st_mode & 0o777 == 0o700
    files = list(place.iterdir())
    assert len(files) == 17
    for file in files:
        assert file.stat().st_mode & 0o777 == 0o600
        assert b"marker" not in file.read_bytes()
        assert "page" not in file.name
    assert "marker" not in repr(kept)
    assert str(list(KEY)) not in repr(kept)
    forget(place)
    assert list(place.iterdir()) == []


def test_another_key_a_damaged_file_and_an_open_directory_are_refused(views, tmp_path):
    place = tmp_path / "keep"
    counts(recovered(open_source(views), place, KEY))
    with pytest.raises(wpinq.SourceError, match="another dataflow"):
        recovered(open_source(views), place, bytes(32))
    parts = sorted(place.glob("*.part"))
    whole = parts[0].read_bytes()
    flipped = whole[:20] + bytes([whole[20] ^ 1]) + whole[21:]
    for damaged in (whole[:-1], whole[:5], b"", flipped, parts[1].read_bytes()):
        parts[0].write_bytes(damaged)
        with pytest.raises(wpinq.SourceError, match="is damaged"):
            counts(recovered(open_source(views), place, KEY))
    parts[0].write_bytes(whole)
    place.chmod(0o750)
    with pytest.raises(wpinq.SourceError, match="chmod 700"):
        recovered(open_source(views), place, KEY)
    place.chmod(0o700)
    (place / HEAD).unlink()
    with pytest.raises(wpinq.SourceError, match="lacks"):
        recovered(open_source(views), place, KEY)
    with pytest.raises(wpinq.SourceError, match="--recover"):
        recovered(open_source(views), views / "below a file", KEY)


SCRIPT = """
def dataflow(views):
    pages = views.map(lambda page: page)
    return {"pages": pages.measure("0.1"), "cdf": pages.shave().map(lambda page, index: index).measure("0.1")}
"""
ASKED = ["--observe", "pages=marker1,marker4,none", "--observe", "cdf=1..40"]


def command(tmp_path, views, out, *more):
    script = tmp_path / "flow.py"
    script.write_text(SCRIPT)
    return ["run", str(script), str(views), "--budget", "1", *ASKED, "--json", str(out), *more]


def answers(path):
    return {name: one["values"] for name, one in json.loads(path.read_text()).items()}


def test_the_command_goes_on_where_it_was_and_cleans_up(tmp_path, views, monkeypatch, capsys):
    out, keep = tmp_path / "out.json", tmp_path / "keep"
    assert main(command(tmp_path, views, out)) == 0
    expected = answers(out)
    out.unlink()
    from wpinq.sources import recovered as room

    write, left = room.write, [6]

    def failing(path, content):
        left[0] -= 1
        if left[0] < 0:
            raise OSError(28, "No space left on device")
        write(path, content)

    monkeypatch.setattr(room, "write", failing)
    assert main(command(tmp_path, views, out, "--recover", str(keep))) == 2
    monkeypatch.undo()
    assert len(list(keep.glob("*.part"))) == 5
    other = tmp_path / "other.py"
    other.write_text(SCRIPT + "\n# another\n")
    assert main(["run", str(other), str(views), "--recover", str(keep)]) == 2
    assert "another dataflow" in capsys.readouterr().err
    assert main(command(tmp_path, views, out, "--recover", str(keep))) == 0
    assert answers(out) == expected
    assert list(keep.iterdir()) == []


KILLER = """
import json, os, random, signal, sys, time
import polars, pyarrow, cryptography
from wpinq.apps.cli import main
from wpinq.apps.cli import app
try:
    import wpinq.core.engines.bytewax.flow, wpinq.core.engines.bytewax.live
except ImportError:  # of this Python there is none
    pass
from wpinq import protection; from wpinq.core.measurements import measurement
command, out, wanted, seed = json.loads(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
draw, killed, seen, took = random.Random(seed), 0, set(), 0.3
while killed < wanted:
    start = time.monotonic()
    child = os.fork()
    if not child:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os._exit(main(command))
    rest = draw.random() * took
    while time.monotonic() - start < rest and not os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        killed += 1
        took = min(took * 1.05, 2.0)
    else:
        assert os.WEXITSTATUS(status) == 0, status
        seen.add(open(out).read())
        os.unlink(out)
        took = (took + time.monotonic() - start) / 2
assert main(command) == 0
seen.add(open(out).read())
print(json.dumps([killed, len(seen)]))
"""


@deeper
@pytest.mark.slow
def test_attack_13_attack_42_random_kills_change_nothing(tmp_path, views):
    """Real SIGKILLs, at moments spread over the whole run: reading, writing parts, charging, sealing, answering."""
    out, kills = tmp_path / "out.json", often(50, 12)
    assert main(command(tmp_path, views, out)) == 0
    expected = answers(out)
    again = command(tmp_path, views, out, "--recover", str(tmp_path / "keep"))
    done = processes.run(
        [sys.executable, "-W", "ignore", "-c", KILLER, json.dumps(again), str(out), str(kills), "1"],
        capture_output=True, text=True, check=False, timeout=250, cwd=Path(wpinq.__file__).parents[1],
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    killed, different = json.loads(done.stdout.splitlines()[-1])
    assert (killed, different) == (kills, 1), "whatever was killed, one and the same output"
    assert answers(out) == expected
    ledger = wpinq.core.ledger.Ledger.existing(Path(f"{views}.ledger"))
    assert float(ledger.spent()[0]) == 0.2
