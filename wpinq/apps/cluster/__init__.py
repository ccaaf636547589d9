"""A run on several processes. See README.md in this folder."""
