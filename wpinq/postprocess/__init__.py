"""Released numbers in, plain numbers out. See README.md in this folder."""
