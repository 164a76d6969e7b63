"""Version numbers: `version`."""
