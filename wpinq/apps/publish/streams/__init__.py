"""Releases of streams: records are sorted into periods, which are published as the clock closes them."""
