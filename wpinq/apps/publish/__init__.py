"""Publish one period after another: `wpinq publish`. See README.md in this folder."""

from __future__ import annotations

from wpinq.apps.publish.plan import Plan
from wpinq.apps.publish.publisher import HeldError, Outcome
from wpinq.apps.publish.release import Release, Standing
from wpinq.errors import BusyError, ChangedError

__all__ = ["BusyError", "ChangedError", "HeldError", "Outcome", "Plan", "Release", "Standing"]
