"""`LinearCrossEntropyOptions`: how `linear_cross_entropy` divides its rows into chunks."""

from __future__ import annotations

from typing import Literal

from ..._C import dtype

__all__ = ["LinearCrossEntropyOptions"]


class LinearCrossEntropyOptions:
    """Asks `linear_cross_entropy` to work in chunks of rows, whose logits are computed again for the gradient.

    Attributes:
        allow_retain_graph (bool): accepted; backward may always run again.
        batch_chunk_size (int, optional): rows of a chunk. Cannot be combined with a `chunking_method` that gives another.
        chunking_method (str, optional): "aspect_ratio" makes the logits of a chunk as large as the input;
            "aspect_ratio:N" makes them N times smaller; "auto" is "aspect_ratio" unless `batch_chunk_size` is given.
        acc_policy, acc_dtype: accepted; gradients accumulate as autograd adds them.

    Raises:
        ValueError: a value is none of those above.
    """

    def __init__(
        self,
        allow_retain_graph: bool = False,
        batch_chunk_size: int | None = None,
        chunking_method: str | None = "auto",
        acc_policy: Literal["accurate", "compact", "auto"] = "auto",
        acc_dtype: dtype | None = None,
    ) -> None:
        if acc_policy not in ("accurate", "compact", "auto"):
            raise ValueError(f"invalid acc_policy: {acc_policy!r}; expected one of 'accurate', 'compact', 'auto'")
        if chunking_method not in (None, "auto"):
            name, colon, factor = chunking_method.partition(":")
            if name != "aspect_ratio" or (colon and not (factor.isdigit() and int(factor) > 0)):
                raise ValueError(f"invalid chunking_method: {chunking_method!r}")
        size = batch_chunk_size
        if size is not None and not (isinstance(size, int) and size > 0):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {size!r}")
        self.allow_retain_graph = allow_retain_graph
        self.batch_chunk_size = batch_chunk_size
        self.chunking_method = chunking_method
        self.acc_policy = acc_policy
        self.acc_dtype = acc_dtype

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LinearCrossEntropyOptions) and vars(self) == vars(other)

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"LinearCrossEntropyOptions({values})"

    def _rows(self, num_batches: int, in_features: int, num_classes: int) -> int:
        """The number of rows of a chunk."""
        size = self.batch_chunk_size
        if self.chunking_method is None or (self.chunking_method == "auto" and size is not None):
            return min(size or num_batches, num_batches) or 1
        factor = int(self.chunking_method.partition(":")[2] or 1)
        chunks = max(-(-num_classes // max(in_features, 1)), 1)
        rows = max(-(-num_batches // chunks), 1)
        found = max((1 << (rows - 1).bit_length()) // factor, 1)
        if size is not None and size != found:
            raise ValueError(
                f"batch_chunk_size (={size}) and chunking_method ('{self.chunking_method}') give different chunk sizes "
                f"({size} vs {found}); pass only one."
            )
        return found
