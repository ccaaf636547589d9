"""Sources that never end: records are sent while the dataflow stays up, and epochs and windows are closed."""

from wpinq.streaming.source import Live, live

__all__ = ["Live", "live"]
