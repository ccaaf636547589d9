"""What a collection means: nodes, stability, fingerprints, data sets, units. See README.md in this folder."""
