"""Cross tables over protected tables: cells and totals that are asked of queries, and plans of many tables."""
