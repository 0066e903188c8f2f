"""The tools that a model may call; the protocol is in `base`."""
