"""Test doubles that ship with planrun, for its own tests and for those of its users.

`planrun.testing.model` answers without a network, `planrun.testing.server` is a real endpoint on 127.0.0.1.
"""
