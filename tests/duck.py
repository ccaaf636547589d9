"""What DuckDB answers over frames."""

import duckdb


def over(**frames):
    """A connection that knows frames by their names."""
    connection = duckdb.connect()
    for name, frame in frames.items():
        connection.register(name, frame.to_arrow())
    return connection


def rows(query, **frames):
    """The rows of an answer."""
    with over(**frames) as connection:
        return connection.sql(query).fetchall()
