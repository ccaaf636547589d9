"""What notebooks and the page in a browser look like. See README.md here."""
