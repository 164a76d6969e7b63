"""Quantised tensors: integers that stand for real numbers, `(integer - zero_point) * scale`. See `docs/decisions/quantized.md`."""
