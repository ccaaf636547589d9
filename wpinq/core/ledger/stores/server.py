"""What a PostgreSQL server is asked before it may keep a ledger: whether it keeps what it confirms.

A charge counts once it is durable. A server that runs without `fsync` or `full_page_writes` may lose it in a crash. A
standby that is not synchronous lacks the newest charges when it takes over: then what people lose is more than the
ledger shows. Both are refused, unless the curator accepts the loss by name (`may_lose=crash`, `may_lose=failover`).
What the server does not show to this user counts as not durable. Looked at at each use, with one query.

Source: privacy rule 38; PostgreSQL's chapters on reliability and on warm standbys.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from wpinq.core.ledger.rows.chain import RefusedError
from wpinq.core.ledger.stores.store import LOCK_TIMEOUT
from wpinq.errors import ExtraError

if TYPE_CHECKING:
    import psycopg

    from wpinq.core.ledger.stores.address import Address

PUT_BACK = "Put back the newest state of the database."
CONNECT = 15
"""Seconds until a server counts as away."""
_ALIVE = {"keepalives_idle": 15, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 30_000}
_SETTINGS = {
    "search_path": "pg_catalog",
    "lock_timeout": f"{LOCK_TIMEOUT:.0f}s",
    "statement_timeout": "0",  # it would end the wait for a standby, and with it the promise
    "idle_in_transaction_session_timeout": "300s",  # a client that froze frees the lock, and has charged nothing
    "tcp_keepalives_idle": "15",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
    "default_transaction_isolation": "read committed",
    "default_transaction_read_only": "off",
    "standard_conforming_strings": "on",
}
_DURABLE = """
SELECT pg_is_in_recovery(), current_setting('fsync') = 'on', current_setting('full_page_writes') = 'on',
       current_setting('synchronous_commit'), current_setting('synchronous_standby_names') <> '',
       (SELECT count(*) FROM pg_stat_replication
        WHERE state IS NULL OR (state <> 'backup' AND (sync_state IS NULL OR sync_state NOT IN ('sync', 'quorum')))),
       (SELECT count(*) FROM pg_replication_slots WHERE slot_type = 'physical' AND NOT active AND NOT temporary)
"""
_STRONG = ("on", "remote_apply")
_CRASH = (
    "its server runs with {setting}=off, so a crash loses charges that were answered; switch it on, or accept that with"
    " may_lose=crash."
)
_FAILOVER = (
    "its server has a standby that does not confirm each commit, or does not show this user whether it does, so that a"
    " failover loses charges that were answered. Name it in synchronous_standby_names, grant this user pg_monitor, or"
    " accept that with may_lose=failover."
)
_LOOK = """
SELECT c.relname, c.relkind::text, c.relpersistence::text, c.relrowsecurity,
       EXISTS (SELECT 1 FROM pg_trigger AS t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal)
       OR EXISTS (SELECT 1 FROM pg_rewrite AS r WHERE r.ev_class = c.oid)
       OR EXISTS (SELECT 1 FROM pg_inherits AS i WHERE c.oid IN (i.inhrelid, i.inhparent)),
       (SELECT string_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod), ', ' ORDER BY a.attnum)
        FROM pg_attribute AS a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped),
       EXISTS (SELECT 1 FROM pg_index AS x WHERE x.indrelid = c.oid AND x.indisprimary AND x.indisvalid)
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname IN ('entries', 'head', 'side') ORDER BY c.relname
"""
MADE = (
    "CREATE SCHEMA {schema}",
    "CREATE TABLE {schema}.entries (number bigint PRIMARY KEY, body text NOT NULL, mac bytea NOT NULL)",
    "CREATE TABLE {schema}.head"
    " (format bigint NOT NULL, number bigint NOT NULL, turn bigint NOT NULL, code bytea NOT NULL, mac bytea NOT NULL)",
    'CREATE TABLE {schema}.side (name text COLLATE "C" NOT NULL, key text COLLATE "C" NOT NULL, text text NOT NULL,'
    " PRIMARY KEY (name, key))",
)
"""What makes the tables of a ledger."""
_TABLES = [
    ("entries", "r", "p", False, False, "number bigint, body text, mac bytea", True),
    ("head", "r", "p", False, False, "format bigint, number bigint, turn bigint, code bytea, mac bytea", False),
    ("side", "r", "p", False, False, "name text, key text, text text", True),
]
HELD = f"another client has held its lock for {LOCK_TIMEOUT:.0f} seconds; ask again, or end that client."
_ADVICE = {
    "25006": "its database is read-only; give the primary's address.",
    "25P03": "this process was away in the middle of a transaction, which the server ended; ask again.",
    "42501": "this user may not use its tables; grant it what it needs, or give another user.",
    "55P03": HELD,
    "40": "another client stood in its way; ask again.",
    "53": "its server has no room, or too many clients; make room, and ask again.",
    "22": f"it is damaged or no ledger. {PUT_BACK}",
    "42": f"it is damaged or no ledger. {PUT_BACK}",
    "3F": f"it is damaged or no ledger. {PUT_BACK}",
}
_AWAY = "the connection to its server was lost, and nothing was answered; ask again when it is back."
_REFUSED = (
    "its server cannot be reached, has too many clients, or refuses this user, password or database; check the URL, the"
    " server, PGPASSWORD or the password file."
)


def driver(label: str) -> ModuleType:
    """The module that speaks to servers, which is loaded where it is needed.

    Raises:
        ExtraError: It is not installed.
    """
    try:
        return import_module("psycopg")
    except ImportError:
        raise ExtraError(f"{label}: there is no psycopg; pip install 'wpinq[postgres]' brings it.") from None


def connect(address: Address) -> psycopg.Connection[Any]:
    """Open a connection, in which nothing but its lock can time out.

    Raises:
        RefusedError: It cannot be reached, or the URL cannot be used.
    """
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    try:
        declared = conninfo_to_dict(address.conninfo)
        options: dict[str, Any] = {**_ALIVE, "connect_timeout": CONNECT, "application_name": "wpinq", **declared}
        connection = psycopg.connect(**options, client_encoding="utf8", autocommit=True)
    except psycopg.OperationalError:
        raise RefusedError(_REFUSED) from None
    except (psycopg.Error, UnicodeError):
        raise RefusedError("its URL has a parameter that libpq does not know; check it.") from None
    try:
        calls = ", ".join("set_config(%s, %s, false)" for _ in _SETTINGS)
        connection.execute(f"SELECT {calls}", [word for pair in _SETTINGS.items() for word in pair])
    except BaseException:
        connection.close()
        raise
    return connection


def check_durable(connection: psycopg.Connection[Any], may_lose: frozenset[str]) -> None:
    """Refuse a server that may lose what it confirms, unless that is accepted.

    Raises:
        RefusedError: It may.
    """
    found = connection.execute(_DURABLE).fetchone()
    standby, fsync, pages, commit, named, loose, away = found or (True, False, False, "", False, 1, 1)
    if standby:
        raise RefusedError(_ADVICE["25006"])
    if "crash" not in may_lose:
        for setting, on in (("fsync", fsync), ("full_page_writes", pages)):
            if not on:
                raise RefusedError(_CRASH.format(setting=setting))
    if "failover" not in may_lose and (loose or (away and not named)):
        raise RefusedError(_FAILOVER)
    if commit not in _STRONG:
        connection.execute("SET synchronous_commit = on")


def tables(connection: psycopg.Connection[Any], schema: str) -> list[tuple[Any, ...]]:
    """What the schema has of the tables of a ledger."""
    rows: list[tuple[Any, ...]] = connection.execute(_LOOK, [schema]).fetchall()
    return rows


def check_tables(connection: psycopg.Connection[Any], schema: str) -> None:
    """Refuse tables that are others than those that were made, or through which a rule, trigger or policy stands.

    Raises:
        RefusedError: They are.
    """
    if tables(connection, schema) != _TABLES:
        raise RefusedError(_ADVICE["42"])


def lost(error: psycopg.Error, connection: psycopg.Connection[Any]) -> bool:
    """Whether nothing is known of what the server did."""
    gone = connection.broken or connection.closed or error.sqlstate is None
    return bool(gone or (error.sqlstate or "")[:2] in ("08", "57", "XX"))


def advice(error: Exception) -> str:
    """What to do; never what the server said, which may quote rows, addresses and users."""
    state = getattr(error, "sqlstate", None)
    if isinstance(error, UnicodeDecodeError):
        return _ADVICE["22"]
    if state is None or state[:2] in ("08", "57"):
        return _AWAY
    return _ADVICE.get(state) or _ADVICE.get(state[:2]) or f"its server refused (SQLSTATE {state}); see its log."
