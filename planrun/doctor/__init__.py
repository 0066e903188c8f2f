"""What `planrun doctor` looks at: logs, what is derived from them, the endpoint. It changes nothing; repairs go into a copy."""
