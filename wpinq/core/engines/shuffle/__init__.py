"""The engine that somebody else's shuffle carries: a plan's five shapes as tasks, which may run anywhere, and twice."""
