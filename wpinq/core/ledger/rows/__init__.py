"""Rows of a ledger under a chain of codes, the secret behind these, and the tables beside them."""
