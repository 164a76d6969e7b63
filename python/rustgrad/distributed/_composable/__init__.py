"""Older places of what `distributed.fsdp` has."""
