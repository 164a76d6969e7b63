"""What PyTorch builds on process groups: recomputed activations (`_checkpoint`), uneven inputs (`join`)."""
