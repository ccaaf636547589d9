"""Stores of ledgers: a file, a database of PostgreSQL, or the memory of a process."""
