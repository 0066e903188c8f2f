"""Language models behind one method; the protocol is in `base`."""
