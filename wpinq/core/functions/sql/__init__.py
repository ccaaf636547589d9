"""SQL text as functions of one record."""
