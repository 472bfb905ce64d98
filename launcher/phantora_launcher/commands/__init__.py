"""The `phantora` commands, one a file."""
