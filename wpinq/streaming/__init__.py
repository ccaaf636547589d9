"""Live sources: records are sent while the dataflow keeps running, and the caller closes epochs and windows."""
