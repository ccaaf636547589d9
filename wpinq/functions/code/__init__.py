"""What a Python function is: its fingerprint, what it captured, where it comes from."""
