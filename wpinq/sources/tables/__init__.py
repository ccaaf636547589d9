"""Tables: Arrow, Parquet, tuples."""
