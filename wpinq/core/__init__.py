"""The core: what carries the guarantee. It knows nothing of programs, pictures and the forms of files."""
