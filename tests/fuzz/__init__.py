"""Fuzzing of everything that reads what strangers write: `python -m tests.fuzz TARGET --seconds 60`."""
