"""The adapter to bytewax: shapes as its steps, with a shard for each worker."""
