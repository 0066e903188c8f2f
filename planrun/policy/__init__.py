"""What may happen: permissions, and the hooks that are asked."""
