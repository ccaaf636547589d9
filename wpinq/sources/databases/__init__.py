"""Databases: PostgreSQL, SQLite, DuckDB."""
