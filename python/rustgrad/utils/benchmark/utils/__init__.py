"""Where PyTorch keeps the classes of `utils.benchmark`: `common`, `compare` and `timer`."""
