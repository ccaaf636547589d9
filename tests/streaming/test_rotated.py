"""No line of a rotated log is lost or read twice: renamed, copied and cut, many times between two looks, with kills."""

import gzip
import os
import random
import shutil

import pytest
from depth import thin

from tests.depth import deep, deeper, often
from tests.streaming.rotations import Log, tried
from wpinq.core.records.schema import Column, Kind, Schema
from wpinq.errors import SourceError
from wpinq.streaming.file_tail import Growing

SCHEMA = Schema((Column("number", Kind.INT),))
FOLLOWERS = []


@pytest.fixture(autouse=True)
def _closed():
    yield
    while FOLLOWERS:
        FOLLOWERS.pop().growing.close()


class Follower:
    """Reads a log; what it has and how far it is are kept together, and a kill takes back what was not kept."""

    def __init__(self, pattern, kind=Growing, **words):
        self.pattern, self.words, self.kept, self.told = str(pattern), {"format": "csv", **words}, [], []
        self.kind = kind
        self.start()

    def start(self):
        FOLLOWERS.append(self)
        self.growing = self.kind(self.pattern, SCHEMA, self.told, **self.words)

    def look(self, *, killed=False):
        found = [number for frame in self.growing.take() for number in frame["number"].drop_nulls()]
        if killed:
            self.kill()
        else:
            self.kept += found
            self.told = [self.growing.positions()]
        return found

    def kill(self):
        self.growing.close()
        self.start()


@pytest.fixture
def log(tmp_path):
    log = Log(tmp_path / "access.csv")
    yield log
    log.file.close()


@pytest.mark.parametrize("pattern", ["access.csv", "access.csv*"])
@deeper
def test_every_line_is_read_once_whatever_happens_between_two_looks(tmp_path, pattern):
    for seed in range(often(200, 8)):
        (tmp_path / str(seed)).mkdir()
        log = Log(tmp_path / str(seed) / "access.csv")
        _sequence(log, pattern, random.Random(seed))
        log.file.close()


def _sequence(log, pattern, chance):
    follower = Follower(log.path.with_name(pattern))
    follower.look()
    for _ in range(60):
        act = chance.choice(["write", "write", "rename", "copy", "copying", "look", "look", "kill", "killed look"])
        if act == "write":
            log.write(chance.choice([1, 3, 40, 900]))  # 900 are more than the bytes by which a file is known
        elif act == "rename":
            log.rename(chance.randrange(3))
        elif act == "copy":
            log.copy()
        elif act == "copying":  # a look while a copy is there, of which one part is written, and the log is not cut yet
            copy = log.path.with_name("access.csv.0")
            whole = log.path.read_bytes()
            copy.write_bytes(whole[: chance.randrange(len(whole) + 1)])
            follower.look()
            copy.write_bytes(whole)
            log.write(chance.choice([0, 5]))
            follower.look()
            shutil.copyfile(log.path, copy)  # what came meanwhile is dropped by logrotate unless it was read
            os.truncate(log.path, 0)
            log.file.write("number\n")
            log.file.flush()
            follower.look()
            copy.unlink()
        elif act == "kill":
            follower.kill()
        else:
            follower.look(killed=act == "killed look")
    follower.look()
    follower.look()
    follower.growing.close()
    assert sorted(follower.kept) == list(range(log.sent))


@thin(3)
@pytest.mark.parametrize("step", ["_seen", "_meet", "_start"])
@pytest.mark.parametrize("acts", ["copy", "write copy", "copy write", "write copy write", "copy write rename write",
                                  "rename write copy write", "write rename write copy write copy write"])  # fmt: skip
@pytest.mark.parametrize("lines", [0, 3, 900])
@pytest.mark.parametrize("known", [False, True])
def test_a_log_that_is_rotated_during_a_look(log, step, acts, lines, known):
    waiting = []

    class Rotated(Growing):
        def _begun(self, found):
            while waiting:
                act = waiting.pop(0)
                log.write(5) if act == "write" else log.copy() if act == "copy" else log.rename(2)
            return found

    setattr(Rotated, step, lambda self, *words: self._begun(getattr(Growing, step)(self, *words)))
    follower = Follower(log.path, Rotated)
    follower.look()
    if known:
        log.write(5)
        follower.look()
    log.rename(1)
    log.write(lines)
    waiting += acts.split()
    for killed in (False, True, False, False):
        follower.look(killed=killed)
    assert sorted(follower.kept) == list(range(log.sent))


def test_the_old_file_is_read_before_its_successor(log):
    follower = Follower(log.path)
    log.write(2)
    assert follower.look() == [0, 1]
    log.write(2)
    log.rename(2)
    log.write(2)
    log.rename(0)
    log.write(1)
    assert follower.look() == [2, 3, 4, 5, 6, 7, 8]


def test_history_is_not_read_unless_it_is_asked_for(log):
    log.write(2)
    log.rename(0)
    log.write(2)
    log.rename(0)
    old = log.path.with_name("access.csv.2")
    with gzip.open(f"{old}.gz", "wb") as file:
        file.write(old.read_bytes())
    old.unlink()
    os.utime(f"{old}.gz", ns=(1, 1))
    log.write(2)
    assert Follower(log.path).look() == [4, 5]
    follower = Follower(log.path, history=True)
    assert follower.look() == [0, 1, 2, 3, 4, 5]
    follower.kill()
    log.write(1)
    assert follower.look() == [6]


def test_what_is_compressed_is_skipped_and_so_is_what_is_unpacked_again(log):
    follower = Follower(log.path.with_name("access.csv*"))
    log.write(2)
    follower.look()
    log.write(2)
    log.rename(0)
    old = log.path.with_name("access.csv.1")
    with gzip.open(f"{old}.gz", "wb") as file:
        file.write(old.read_bytes())
    old.unlink()  # its descriptor is held
    log.write(1)
    assert follower.look() == [2, 3, 4]
    other = Follower(log.path)
    other.look()
    with gzip.open(f"{old}.gz") as file:
        old.write_bytes(file.read())
    old.with_name(f"{old.name}.gz").unlink()
    assert other.look() == []
    log.write(1)
    log.rename(0)
    assert other.look() == [5]


def test_a_log_of_another_server_in_the_same_directory_is_not_read(log):
    follower = Follower(log.path)
    (log.path.parent / "access-1.csv").write_text("number\n100\n")
    (log.path.parent / "access.old.csv").write_text("number\n200\n")
    log.write(1)
    assert follower.look() == [0]
    log.rename(0)
    with (log.path.parent / "access-1.csv").open("a") as other:
        other.write("101\n")
    assert follower.look() == []


def test_a_copy_made_by_hand_is_not_read(log):
    follower = Follower(log.path)
    log.write(3)
    follower.look()
    shutil.copyfile(log.path, log.path.with_name("access.csv.7"))
    for _ in range(2):
        log.write(1)
        assert len(follower.look()) == 1
        log.rename(0)
    assert follower.look() == []
    assert sorted(follower.kept) == list(range(log.sent))


def test_between_two_files_a_log_has_no_name_for_a_moment(log):
    follower = Follower(log.path)
    log.write(1)
    follower.look()
    log.write(1)
    log.path.rename(log.path.with_name("access.csv.1"))
    assert follower.look() == [1]
    follower.kill()
    assert follower.look() == []
    log.path.write_text("number\n2\n")
    assert follower.look() == [2]
    (log.path.with_name("access.csv.1")).unlink()
    log.path.unlink()
    with pytest.raises(SourceError, match="no such file"):
        follower.look()


@deep
@pytest.mark.slow
@pytest.mark.parametrize("pattern", ["access.csv", "access.csv*"])
def test_at_full_speed_with_kills(tmp_path, pattern):
    done = tried(tmp_path, lines=100_000, rate=20_000, rotations=20, kills=4, pattern=pattern)
    assert done[0] >= 100_000
    assert done[1:] == (0, 0), "read never, read twice"
