"""Names that PyTorch keeps private, and that programs import all the same: `nested._internal.nested_tensor`."""
