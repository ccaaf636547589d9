"""What a caller waits for: bars meanwhile, and modules that are loaded late, so that there is less to wait for."""
