"""Text files: rows and fields, line by line."""
