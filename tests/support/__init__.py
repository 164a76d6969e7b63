"""What the tests share: the module under test, the sample language, the oracle, numerical gradients."""
