"""The state of dataflows: identities and exact integer weights, and of a record only the columns that are needed."""
