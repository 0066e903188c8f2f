"""Keeping the values of secrets out of what is recorded, shown and sent: the values that are known, and the formats of tokens."""
