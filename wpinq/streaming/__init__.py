"""Live sources: records are sent while the dataflow keeps running, and the caller closes epochs and windows."""

from wpinq.streaming.collection import Live
from wpinq.streaming.source import live

__all__ = ["Live", "live"]
