"""The session on disk: the log of one run, the store of all of them, what is derived from them."""
