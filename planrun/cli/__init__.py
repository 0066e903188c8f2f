"""The command line: one command a small module, imported when it is used.

A command imports what it works with when it runs, so that its `--help`, and wrong arguments, are answered at once."""
