"""`rustgrad._vendor`: the path under which programs find the version arithmetic that PyTorch brings."""
