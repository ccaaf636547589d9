"""Publish one period after another: `wpinq publish`. See README.md in this folder."""

from __future__ import annotations

from wpinq.errors import ChangedError
from wpinq.publish.plan import Plan
from wpinq.publish.publisher import HeldError, Outcome
from wpinq.publish.register import BusyError
from wpinq.publish.release import Release, Standing

__all__ = ["BusyError", "ChangedError", "HeldError", "Outcome", "Plan", "Release", "Standing"]
