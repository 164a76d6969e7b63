"""Records what a program computes, and compares several runs of it: what exporters have in common (`docs/decisions/onnx.md`)."""
