"""A user's dataflow script. See README.md in this folder."""
