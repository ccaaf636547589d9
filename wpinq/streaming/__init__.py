"""Live sources: records are sent while the dataflow keeps running, and the caller closes epochs and windows."""

from wpinq.streaming.source import Live, live

__all__ = ["Live", "live"]
