"""The command line: one command a small module, imported when it is used."""
