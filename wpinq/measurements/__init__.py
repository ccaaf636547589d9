"""What leaves a protected collection, charged first. See README.md in this folder."""
