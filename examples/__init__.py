"""Short stories that run in seconds, each one script: `python -m examples.things_that_count OUT`."""
