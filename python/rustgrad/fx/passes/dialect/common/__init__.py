"""Passes over graphs of ops of any kind."""
