"""The secret: hidden, private on disk, whole when created at once, and an injective root of all keys."""

from __future__ import annotations

import copy
import logging
import os
import pickle
import stat
import subprocess
import sys
import threading
from fractions import Fraction
from pathlib import Path

import processes
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wpinq.core.ledger.rows.secret import Secret
from wpinq.core.records.fields import encode
from wpinq.errors import InternalError, LedgerError

KEY = bytes(range(32))
DERIVED = "032862925edb6f6f221dda412e25ea9099aa319cfe4039fc6b04e60f35f35835"
MAC = "f43ddbd9242fb8d9a53b6c0e5a3083a108cd695ea4ad034dab469215a584c30b"

leaves = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(), st.binary(), st.fractions(), st.integers(-(2**200), 2**200)
)
fields = st.recursive(leaves, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=8)


def typed(value: object) -> object:
    """Equality with types: 1, True and Fraction(1) differ."""
    return (type(value), tuple(map(typed, value)) if isinstance(value, tuple) else value)


# ------------------------------------------------------------------ encoding


@given(st.lists(fields, max_size=3), st.lists(fields, max_size=3))
def test_encode_is_injective(a: list, b: list) -> None:
    assert (encode(*a) == encode(*b)) == (typed(tuple(a)) == typed(tuple(b)))


@given(
    st.lists(st.text(alphabet="ab", max_size=3), max_size=4), st.lists(st.text(alphabet="ab", max_size=3), max_size=4)
)
def test_encode_does_not_confuse_where_fields_end(a: list, b: list) -> None:
    assert (encode(*a) == encode(*b)) == (a == b)
    assert (encode(tuple(a)) == encode(tuple(b))) == (a == b)


@given(st.lists(fields, min_size=1, max_size=3), st.lists(fields, min_size=1, max_size=3))
def test_no_encoding_is_the_start_of_another(a: list, b: list) -> None:
    one, other = encode(tuple(a)), encode(tuple(b))
    assert one == other or not other.startswith(one)


NEAR = [
    None, False, True, 0, 1, -1, 127, 128, -128, -129, 255, 256, "", "1", "0", b"", b"1", Fraction(0), Fraction(1),
    Fraction(1, 2), (), (0,), ((),), (0, 0), ((0,), 0), (None,), "n", b"n", "\ud800", "\U00010000", "\ud800\udc00",
    "é", "e\u0301", "a\0", "a",
]  # fmt: skip


def test_near_values_are_all_different() -> None:
    assert len({encode(value) for value in NEAR}) == len(NEAR)


CONFUSABLE = [
    (Fraction(1, 2),), (1, 2), (b"y",), (b"", b""), (b"yy",), (b"y", b""), (b"", b"y"), ("s",), ("", ""), ("i",),
    ((1, 2),), ((1,), 2), (1, (2,)), ((), 1), ((1,),), (((1,),),), ((), ()), ((()),), (None, None), ("nn",), (-1,),
    (255,), (True, True), ("b1b1",), (2**63,), (-(2**63),), (2**64 - 1,), (b"\0", b""), (b"", b"\0"),
    (b"\0" * 9,), (b"\0" * 17,),
]  # fmt: skip


def test_rows_made_to_be_confused_are_not() -> None:
    rows = [row if isinstance(row, tuple) else (row,) for row in CONFUSABLE]
    assert len({encode(*row) for row in rows}) == len({typed(row) for row in rows})
    joined = {encode(*a, *b): typed((*a, *b)) for a in rows for b in rows}
    assert len(joined) == len({typed((*a, *b)) for a in rows for b in rows})


@pytest.mark.parametrize("value", [1.0, [1], {1}, object(), (1, 2.0)])
def test_what_has_no_canonical_encoding_is_refused(value: object) -> None:
    with pytest.raises(InternalError, match="no canonical encoding"):
        encode(value)  # type: ignore[arg-type]


# ------------------------------------------------------------------ keys


def test_derived_keys_never_change() -> None:
    """Frozen values: ledgers and releases depend on them (format 1)."""
    secret = Secret(KEY)
    assert secret.derive("noise", "views", 1, Fraction(1, 3)).hex() == DERIVED
    assert secret.mac("ledger", b"row").hex() == MAC


def test_purposes_contexts_sizes_secrets_and_macs_are_separate() -> None:
    secret = Secret(KEY)
    keys = [
        secret.derive("noise"), secret.derive("noise", ""), secret.derive("nois", "e"), secret.derive("digest"),
        secret.derive("noise", ("a", "b")), secret.derive("noise", "a", "b"), secret.derive("noise", "ab"),
        secret.derive("noise", 1), secret.derive("noise", True), secret.derive("noise", Fraction(1)),
        secret.derive("noise", b"a"), secret.derive("noise", "a"), secret.mac("noise", b"a"), secret.mac("nois", b"ea"),
        secret.derive("noise", size=64)[:32], Secret(bytes(32)).derive("noise"),
    ]  # fmt: skip
    assert len(set(keys)) == len(keys)
    assert [len(secret.derive("noise", size=size)) for size in (1, 16, 32, 64)] == [1, 16, 32, 64]


# ------------------------------------------------------------------ hidden


def test_nothing_shows_a_secret(caplog: pytest.LogCaptureFixture) -> None:
    secret = Secret(KEY)
    logging.getLogger("test").warning("%s %r", secret, [secret])
    shown = [repr(secret), str(secret), f"{secret}", repr({"k": (secret,)}), caplog.text, str(dir(secret))]
    for text in shown:
        assert KEY.hex() not in text
        assert repr(KEY) not in text
        assert "\\x01\\x02" not in text
    with pytest.raises(TypeError):
        vars(secret)


@pytest.mark.parametrize(
    "leak",
    [copy.copy, copy.deepcopy, lambda s: s.__reduce__(), lambda s: s.__getstate__()]
    + [lambda s, p=protocol: pickle.dumps([s], p) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)],
)
def test_a_secret_is_never_copied_or_pickled(leak) -> None:
    with pytest.raises(TypeError) as caught:
        leak(Secret(KEY))
    assert KEY.hex() not in str(caught.value)


def test_a_wrong_length_is_refused_without_quoting_it() -> None:
    with pytest.raises(LedgerError) as caught:
        Secret(b"hush hush")
    assert "hush" not in str(caught.value)


def test_fresh_secrets_differ() -> None:
    assert len({Secret.fresh().derive("test") for _ in range(100)}) == 100


# ------------------------------------------------------------------ on disk


def same(a: Secret, b: Secret) -> bool:
    return a.derive("test") == b.derive("test")


def test_created_private_and_loaded_again(tmp_path: Path) -> None:
    path = tmp_path / "views.secret"
    first = Secret.load_or_create(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert len(path.read_bytes()) == 32
    assert same(first, Secret.load_or_create(path))
    assert not same(first, Secret.load_or_create(tmp_path / "other.secret"))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["other.secret", "views.secret"]  # no drafts stay


@pytest.mark.parametrize("mode", [0o640, 0o620, 0o610, 0o604, 0o602, 0o601, 0o644, 0o666])
def test_a_file_open_to_others_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "s"
    Secret.load_or_create(path)
    path.chmod(mode)
    with pytest.raises(LedgerError, match=r"chmod 600"):
        Secret.load_or_create(path)
    path.chmod(0o400)
    Secret.load_or_create(path)


@pytest.mark.parametrize("content", [b"", b"short-secret-text", KEY + b"\n", KEY[:-1]])
def test_a_file_of_the_wrong_length_is_refused_and_kept(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "s"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(LedgerError, match="restore it from a backup") as caught:
        Secret.load_or_create(path)
    assert path.read_bytes() == content
    assert caught.value.__cause__ is None
    assert "short-secret" not in str(caught.value)


def test_places_that_cannot_hold_a_secret_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing" / "s"):
        with pytest.raises(LedgerError, match="secret"):
            Secret.load_or_create(path)
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(LedgerError, match="not a regular file"):
        Secret.load_or_create(tmp_path / "pipe")


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(LedgerError, match="No space left"):
        Secret.load_or_create(tmp_path / "s")
    assert list(tmp_path.iterdir()) == []


def test_a_new_secret_is_durable_before_it_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The draft is synced, then linked, then the directory is synced: no crash leaves a secret that can vanish."""
    steps, fsync, link = [], os.fsync, os.link

    def note_sync(descriptor: int) -> None:
        steps.append("directory" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    def note_link(*paths: Path) -> None:
        steps.append("link")
        link(*paths)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(os, "link", note_link)
    Secret.load_or_create(tmp_path / "s")
    assert steps == ["file", "link", "directory"]


def test_threads_that_create_at_once_agree(tmp_path: Path) -> None:
    for trial in range(20):
        barrier, keys = threading.Barrier(8), []

        def create(path: Path = tmp_path / f"s{trial}", barrier=barrier, keys=keys) -> None:
            barrier.wait()
            keys.append(Secret.load_or_create(path).derive("test"))

        threads = [threading.Thread(target=create) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(keys) == 8
        assert len(set(keys)) == 1


CREATE = """
import sys, time, pathlib
from wpinq.core.ledger.rows.secret import Secret
while time.time() < float(sys.argv[2]): pass
print(Secret.load_or_create(pathlib.Path(sys.argv[1])).derive("test").hex())
"""


def test_processes_that_create_at_once_agree(tmp_path: Path) -> None:
    import time

    start = str(time.time() + 1.0)
    command = [sys.executable, "-c", CREATE, str(tmp_path / "s"), start]
    running = [processes.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(6)]
    answers = [process.communicate(timeout=60)[0] for process in running]
    assert [process.returncode for process in running] == [0] * 6
    assert len(set(answers)) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["s"]


# ------------------------------------------------------------------ environment


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WPINQ_SECRET", raising=False)
    monkeypatch.delenv("WPINQ_SECRET_FILE", raising=False)


def test_no_secret_in_the_environment() -> None:
    assert Secret.from_environment() is None


def test_digits_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WPINQ_SECRET", KEY.hex().upper())
    found = Secret.from_environment()
    assert found is not None
    assert same(found, Secret(KEY))


@pytest.mark.parametrize(
    "digits", ["", "ab", "zz" * 32, "ab" * 31 + " a", " " + "ab" * 32, "ab" * 32 + "\n", "ab" * 33]
)
def test_wrong_digits_are_refused_unquoted(monkeypatch: pytest.MonkeyPatch, digits: str) -> None:
    monkeypatch.setenv("WPINQ_SECRET", digits)
    with pytest.raises(LedgerError, match="openssl rand") as caught:
        Secret.from_environment()
    assert "abab" not in str(caught.value)


def test_a_file_in_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "s"
    monkeypatch.setenv("WPINQ_SECRET_FILE", str(path))
    with pytest.raises(LedgerError, match="No such file"):  # never created: a typing mistake is not a new secret
        Secret.from_environment()
    made = Secret.load_or_create(path)
    found = Secret.from_environment()
    assert found is not None
    assert same(made, found)
    path.chmod(0o644)
    with pytest.raises(LedgerError, match="chmod"):
        Secret.from_environment()
    path.write_text(KEY.hex())  # as `openssl rand -hex 32` prints it, which is for WPINQ_SECRET
    path.chmod(0o600)
    with pytest.raises(LedgerError, match="openssl rand -out FILE 32"):
        Secret.from_environment()
    monkeypatch.setenv("WPINQ_SECRET", KEY.hex())
    with pytest.raises(LedgerError, match="two are set"):
        Secret.from_environment()
