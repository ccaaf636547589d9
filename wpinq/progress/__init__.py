"""What a caller waits for: bars meanwhile."""
