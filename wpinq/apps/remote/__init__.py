"""The contract between analysts and a server, and the analyst's side of it. See README.md here."""
