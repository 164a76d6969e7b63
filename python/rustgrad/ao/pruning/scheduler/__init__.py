"""How many weights become zero, by epoch."""
