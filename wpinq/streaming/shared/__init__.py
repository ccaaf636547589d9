"""Streams that several processes and hosts read together, kept in the database of their ledger."""
