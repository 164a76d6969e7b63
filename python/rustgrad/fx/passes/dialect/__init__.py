"""`rustgrad.fx.passes.dialect`: passes over graphs of ops."""
