"""What may happen: permissions, secrets."""
