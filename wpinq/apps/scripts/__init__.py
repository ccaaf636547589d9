"""A user's dataflow script. See README.md in this folder."""

WORKER = "wpinq.apps.scripts.worker"
"""The module that other processes of a command run."""
