"""`AdaptiveLogSoftmaxWithLoss`: a softmax over many classes that is cheap for the rare ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..._base import Tensor, argmax
from ..._C import dtype
from ..._typing import DeviceLike
from .. import functional as F
from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]


class _ASMoutput(NamedTuple):
    """The log probabilities of the targets, and the mean loss."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """The log softmax of a linear layer over classes sorted by frequency, in clusters (Grave et al., ICML 2017).

    The head has the classes below `cutoffs[0]` and one entry for each further cluster, whose classes are
    a product of two thin matrices: of `in_features / div_value ** (i + 1)` features for cluster `i`.

    Args:
        in_features (int): size of the last dimension of the input.
        n_classes (int): number of classes.
        cutoffs (sequence of int): where clusters begin, increasing, between 1 and `n_classes - 1`.
        div_value (float): the factor by which each cluster has fewer features than the one before.
        head_bias (bool): whether the head has an additive bias.

    Shape:
        input `(N, in_features)` or `(in_features)`, target `(N)` or `()`; `output` as the target, `loss` `()`.

    Raises:
        ValueError: `cutoffs` are not increasing or out of range.
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: DeviceLike | None = None,
        dtype: dtype | None = None,
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        whole = all(int(c) == c for c in cutoffs)
        if not whole or sorted(set(cutoffs)) != cutoffs or cutoffs[0] <= 0 or cutoffs[-1] > n_classes - 1:
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each "
                f"value is between 1 and n_classes-1; got {cutoffs} for {n_classes} classes"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters

        place = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **place)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            width = int(in_features // div_value ** (i + 1))
            classes = self.cutoffs[i + 1] - self.cutoffs[i]
            inner = Linear(in_features, width, bias=False, **place)
            self.tail.append(Sequential(inner, Linear(width, classes, bias=False, **place)))

    def reset_parameters(self) -> None:
        """Draws all parameters again."""
        self.head.reset_parameters()
        for inner, outer in self.tail:
            inner.reset_parameters()
            outer.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        self._check(input_, target_)
        batched = target_.dim() > 0
        input, target = (input_, target_) if batched else (input_.unsqueeze(0), target_.unsqueeze(0))

        output = input.new_zeros(target.size(0))
        in_head, seen = target.new_empty(target.size(0)), 0
        for i, (low, high) in enumerate(zip([0, *self.cutoffs], self.cutoffs, strict=False)):
            rows = ((target >= low) & (target < high)).nonzero().reshape(-1)
            seen += rows.numel()
            if rows.numel() == 0:
                continue
            chosen = target.index_select(0, rows)
            if i == 0:
                in_head.index_copy_(0, rows, chosen)
                continue
            in_head.index_fill_(0, rows, self.shortlist_size + i - 1)
            log_probs = F.log_softmax(self.tail[i - 1](input.index_select(0, rows)), dim=1)
            output.index_copy_(0, rows, log_probs.gather(1, (chosen - low).unsqueeze(1)).squeeze(1))
        if seen != target.size(0):
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{target.min().item()}, {target.max().item()}] were found. "
            )
        log_probs = F.log_softmax(self.head(input), dim=1)
        output += log_probs.gather(1, in_head.unsqueeze(1)).squeeze(1)
        return _ASMoutput(output if batched else output.squeeze(0), (-output).mean())

    @staticmethod
    def _check(input, target):
        if target.dim() > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        rank = target.dim() + 1
        if rank == 2 and input.size(0) != target.size(0):
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        if input.dim() != rank:
            raise RuntimeError(
                f"{rank - 1}D target tensor expects {rank}D input tensors, but found inputs with size {input.size()}"
            )

    def _all_log_probs(self, input, head_output):
        head = F.log_softmax(head_output, dim=1)
        out = input.new_empty((head.size(0), self.n_classes))
        out[:, : self.shortlist_size] = head[:, : self.shortlist_size]
        for i, (low, high) in enumerate(zip(self.cutoffs, self.cutoffs[1:], strict=False)):
            of_cluster = head[:, self.shortlist_size + i].unsqueeze(1)
            out[:, low:high] = F.log_softmax(self.tail[i](input), dim=1) + of_cluster
        return out

    def log_prob(self, input: Tensor) -> Tensor:
        """The log probabilities of all classes: `(N, in_features)` gives `(N, n_classes)`."""
        return self._all_log_probs(input, self.head(input))

    def predict(self, input: Tensor) -> Tensor:
        """The most likely class of each row; clusters are computed only where the head chooses one."""
        head_output = self.head(input)
        classes = argmax(head_output, dim=1)
        in_cluster = classes >= self.shortlist_size
        if in_cluster.any():
            log_probs = self._all_log_probs(input[in_cluster], head_output[in_cluster])
            classes[in_cluster] = argmax(log_probs, dim=1)
        return classes
