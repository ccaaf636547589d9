"""Pages for browsers, made on the server: they ask the operations of the API, and show what those answer."""
