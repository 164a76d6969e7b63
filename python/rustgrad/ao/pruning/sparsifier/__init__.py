"""Which weights become zero."""
