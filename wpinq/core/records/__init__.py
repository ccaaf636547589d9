"""What a record is: columns, values, identities, batches. See README.md in this folder."""
