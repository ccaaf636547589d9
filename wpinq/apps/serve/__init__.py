"""Serve measurements and questions to analysts over HTTP, each under a cap of the budget. See README.md here."""
