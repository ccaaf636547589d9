"""What agents may ask of a server by the Model Context Protocol. See README.md here."""
