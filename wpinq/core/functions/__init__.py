"""A user's functions and expressions, bound to the columns of a collection."""
