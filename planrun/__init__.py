"""planrun: run a plan of steps with a language model, unattended, in a bounded context, surviving crashes."""

__version__ = "0.1.0"
