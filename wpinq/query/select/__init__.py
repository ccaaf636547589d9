"""What a SELECT and its subqueries read: each clause as steps of a plan, and its names as columns."""
