"""Databases: PostgreSQL, SQLite."""
