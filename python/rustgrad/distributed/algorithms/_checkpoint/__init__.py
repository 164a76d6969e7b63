"""Modules that recompute their activations: `checkpoint_wrapper`."""
