"""Shared test support: the module under test, the sample language, the oracle, numerical gradients."""
