"""Attention whose scores and masks are functions of positions, by composition of other ops.

A `score_mod(score, b, h, q_idx, kv_idx)` changes scores, a `mask_mod(b, h, q_idx, kv_idx)` says which ones count. They
are called once with tensors of all positions, which broadcast to `(B, H, L, S)`: no block is skipped, and memory is that of
all scores.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple, NoReturn

from ... import _base
from ..._base import Tensor, arange, argsort, logsumexp, matmul, ones, softmax, where, zeros
from ..._typing import DeviceLike, Self

ScoreMod = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
MaskMod = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
# PyTorch's names, which programs import for annotations.
_score_mod_signature, _mask_mod_signature = ScoreMod, MaskMod

__all__ = [
    "AuxOutput",
    "AuxRequest",
    "BlockMask",
    "and_masks",
    "create_block_mask",
    "create_mask",
    "flex_attention",
    "noop_mask",
    "or_masks",
]

_BLOCK_SIZE = _DEFAULT_SPARSE_BLOCK_SIZE = 128


class AuxRequest(NamedTuple):
    """What `flex_attention` returns beside its output: the logsumexp of the scores, their largest."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What was asked for with `AuxRequest`, None for what was not: each `(B, Hq, L)`."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """The `mask_mod` of no mask."""
    return ones((), dtype=_base.bool, device=batch.device)


def _without_function(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> NoReturn:
    raise RuntimeError(
        "Cannot use mask_mod from a sliced BlockMask, whose positions are others; expected a function of its own. "
        "Hint: set its mask_mod from the whole mask's, with the offset of its queries."
    )


def _combined(mask_mods, operation):
    if not all(callable(f) for f in mask_mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")

    def mask_mod(b, h, q_idx, kv_idx):
        return reduce(operation, (f(b, h, q_idx, kv_idx) for f in mask_mods))

    return mask_mod


def and_masks(*mask_mods: MaskMod) -> MaskMod:
    """The `mask_mod` that holds where all of these do."""
    return _combined(mask_mods, lambda a, b: a & b)


def or_masks(*mask_mods: MaskMod) -> MaskMod:
    """The `mask_mod` that holds where one of these does."""
    return _combined(mask_mods, lambda a, b: a | b)


def _positions(sizes, device):
    """Positions along each of four dimensions, of shapes that broadcast to all of them."""
    shapes = [[-1 if i == d else 1 for i in range(4)] for d in range(4)]
    return [arange(n, device=device).view(shape) for n, shape in zip(sizes, shapes, strict=True)]


def create_mask(
    mod_fn: MaskMod | ScoreMod,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: DeviceLike | None = None,
) -> Tensor:
    """The bool mask `(B, H, Q_LEN, KV_LEN)` of a `mask_mod`; of a `score_mod` the scores that it makes of zeros."""
    sizes = (B or 1, H or 1, Q_LEN, KV_LEN)
    positions = _positions(sizes, device)
    if _parameters(mod_fn) == 5:
        scores = mod_fn(zeros(sizes, device=device), *positions)
        return where(scores.isneginf(), -math.inf, 0.0).expand(sizes)
    return mod_fn(*positions).expand(sizes)


def _parameters(function):
    code = getattr(function, "__code__", None)
    return 4 if code is None else code.co_argcount - (1 if hasattr(function, "__self__") else 0)


def _ordered(dense):
    """(number of blocks in each row, their columns first)."""
    dense = dense.to(_base.int32)
    columns = argsort(dense, dim=-1, descending=True, stable=True)
    return dense.sum(-1).to(_base.int32), columns.to(_base.int32)


def _dense(count, columns):
    found = zeros(columns.shape, dtype=_base.int32, device=columns.device)
    valid = arange(columns.shape[-1], device=columns.device) < count.unsqueeze(-1)
    return found.scatter(-1, columns.long(), valid.to(_base.int32))


class BlockMask:
    """A mask by blocks: for each block of queries the blocks of keys that count in part or in full.

    Attributes:
        kv_num_blocks `(B, H, rows)`, kv_indices `(B, H, rows, cols)`: number and columns of the partial blocks.
        full_kv_num_blocks, full_kv_indices: those of the blocks without masked scores, or None.
        mask_mod: the function that decides within blocks.
        seq_lengths (int, int), BLOCK_SIZE (int, int): numbers of queries and keys, in all and of a block.
    """

    def __init__(
        self,
        seq_lengths: tuple[int, int],
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None,
        full_kv_indices: Tensor | None,
        BLOCK_SIZE: tuple[int, int],
        mask_mod: MaskMod,
    ) -> None:
        self.seq_lengths = seq_lengths
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.BLOCK_SIZE = BLOCK_SIZE
        self.mask_mod = mask_mod

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None,
        BLOCK_SIZE: int | tuple[int, int] = _BLOCK_SIZE,
        mask_mod: MaskMod | None = None,
        seq_lengths: tuple[int, int] | None = None,
    ) -> Self:
        """From the blocks of each row, partial and full."""
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError("full_kv_num_blocks and full_kv_indices must be both provided or omitted")
        block = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else tuple(BLOCK_SIZE)
        if seq_lengths is None:
            seq_lengths = (kv_indices.shape[-2] * block[0], kv_indices.shape[-1] * block[1])
        mask_mod = noop_mask if mask_mod is None else mask_mod
        return cls(seq_lengths, kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, block, mask_mod)

    @property
    def shape(self) -> tuple[int, ...]:
        """(B, H, queries, keys)."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """Number of scores."""
        return math.prod(self.shape)

    def __getitem__(self, index: Any) -> BlockMask:
        """The mask of some batches, heads and blocks of queries, by position; its `mask_mod` has to be set anew.

        A number keeps its dimension. The queries that are left count from zero.
        """
        parts = index if isinstance(index, tuple) else (index,)
        if len(parts) > 3:
            raise IndexError("BlockMask indexing supports batch, head, and Q-block dimensions")
        parts = (*parts, slice(None), slice(None), slice(None))[:3]
        place = tuple(slice(i, (i + 1) or None) if isinstance(i, int) else i for i in parts)
        tables = (self.kv_num_blocks, self.kv_indices, self.full_kv_num_blocks, self.full_kv_indices)
        chosen: list[Any] = [None if t is None else t[place] for t in tables]
        rows, size = self.kv_num_blocks.shape[-1], self.BLOCK_SIZE[0]
        queries = self.kv_indices[place].shape[-2] * size
        if isinstance(place[2], slice) and rows - 1 in range(rows)[place[2]]:
            # The last block may not be full.
            queries -= rows * size - self.seq_lengths[0]
        return BlockMask((queries, self.seq_lengths[1]), *chosen, self.BLOCK_SIZE, _without_function)

    def to_dense(self) -> Tensor:
        """`(B, H, rows, cols)`, 1 for a block that counts."""
        found = _dense(self.kv_num_blocks, self.kv_indices)
        if self.full_kv_num_blocks is None:
            return found
        return found | _dense(self.full_kv_num_blocks, self.full_kv_indices)

    def sparsity(self) -> float:
        """Percentage of blocks without a score that counts."""
        dense = self.to_dense()
        return 100 * (1 - dense.sum().item() / dense.numel())

    def to(self, device: DeviceLike) -> BlockMask:
        """On a device."""
        tables = (self.kv_num_blocks, self.kv_indices, self.full_kv_num_blocks, self.full_kv_indices)
        moved = [None if t is None else t.to(device) for t in tables]
        return BlockMask(self.seq_lengths, *moved, self.BLOCK_SIZE, self.mask_mod)

    def _allowed(self, positions):
        """Which scores count: full blocks, and those of partial blocks where `mask_mod` holds."""
        b, h, q, kv = positions
        rows, cols = q // self.BLOCK_SIZE[0], kv // self.BLOCK_SIZE[1]
        batch, heads = (b if self.shape[0] > 1 else b * 0, h if self.shape[1] > 1 else h * 0)
        partial = _dense(self.kv_num_blocks, self.kv_indices).bool()
        allowed = partial[batch, heads, rows, cols] & self.mask_mod(b, h, q, kv)
        if self.full_kv_num_blocks is not None:
            full = _dense(self.full_kv_num_blocks, self.full_kv_indices).bool()
            allowed = allowed | full[batch, heads, rows, cols]
        return allowed

    def __repr__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, BLOCK_SIZE={self.BLOCK_SIZE})"


def create_block_mask(
    mask_mod: MaskMod,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: DeviceLike | None = None,
    BLOCK_SIZE: int | tuple[int, int] = _BLOCK_SIZE,
    _compile: bool = False,
    separate_full_blocks: bool = True,
) -> BlockMask:
    """The `BlockMask` of a `mask_mod`; None for B or H makes one mask for all.

    Raises:
        AssertionError: `mask_mod` does not take four arguments.
    """
    if _parameters(mask_mod) != 4:
        raise AssertionError(f"create-block_mask requires a mask_mod function! Got {mask_mod}")
    block = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else tuple(BLOCK_SIZE)
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    rows, cols = -(-Q_LEN // block[0]), -(-KV_LEN // block[1])
    padded = zeros((*mask.shape[:2], rows * block[0], cols * block[1]), dtype=_base.bool, device=device)
    padded[:, :, :Q_LEN, :KV_LEN] = mask
    counts = padded.view(*mask.shape[:2], rows, block[0], cols, block[1]).sum((3, 5))
    full = counts == block[0] * block[1]
    if not separate_full_blocks:
        return BlockMask((Q_LEN, KV_LEN), *_ordered(counts > 0), None, None, block, mask_mod)
    return BlockMask((Q_LEN, KV_LEN), *_ordered((counts > 0) & ~full), *_ordered(full), block, mask_mod)


def _check(query, key, value, enable_gqa):
    for name, t in (("query", query), ("key", key), ("value", value)):
        if t.dim() != 4:
            raise NotImplementedError(f"NYI: query, key, and value must be 4D tensors, got {name} of {t.dim()}D")
    if query.dtype != key.dtype or query.dtype != value.dtype:
        raise ValueError(
            "Expected query, key, and value to have the same dtype, but got query.dtype: "
            f"{query.dtype}, key.dtype: {key.dtype}, and value.dtype: {value.dtype} instead."
        )
    if query.size(-1) != key.size(-1):
        raise ValueError(
            "Expect query and key/value to have the same embedding dimension but got "
            f"E={query.size(-1)} and E={key.size(-1)}."
        )
    heads, groups = query.size(1), key.size(1)
    if not enable_gqa and heads != groups:
        raise ValueError(
            "Expect query and key/value to have the same number of heads but got "
            f"Hq={heads} and Hkv={groups}. Try setting enable_gqa=True for GQA."
        )
    if enable_gqa and heads % groups:
        raise ValueError(
            f"Expect number of query heads to be a multiple of kv heads for GQA but got Hq={heads} and Hkv={groups}."
        )


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: ScoreMod | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: dict[str, Any] | None = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Tensor | tuple[Tensor, Tensor] | tuple[Tensor, AuxOutput]:
    """Attention with scores changed by `score_mod` and masked by `block_mask`.

    Args:
        query, key, value: `(B, Hq, L, E)`, `(B, H, S, E)`, `(B, H, S, Ev)`.
        scale (float): factor of the scores, `1 / sqrt(E)` unless given.
        enable_gqa (bool): whether heads of key and value are repeated for those of the query.
        return_lse (bool): whether the logsumexp of the scores `(B, Hq, L)` is returned too.
        kernel_options: accepted, and without effect.
        return_aux (AuxRequest): what is returned too, as an `AuxOutput`; instead of `return_lse`.

    Raises:
        ValueError, NotImplementedError: shapes or dtypes do not fit together.

    Source: Dong et al., "Flex Attention", arXiv:2412.05496.
    """
    _check(query, key, value, enable_gqa)
    if return_lse and return_aux is not None:
        raise ValueError(
            "Cannot specify both return_lse and return_aux. return_lse is deprecated, please use "
            "return_aux=AuxRequest(lse=True) instead."
        )
    times = query.size(1) // key.size(1)
    if times > 1:
        key, value = key.repeat_interleave(times, 1), value.repeat_interleave(times, 1)
    scale = 1.0 / math.sqrt(query.size(-1)) if scale is None else scale
    scores = matmul(query, key.transpose(-2, -1)) * scale
    positions = _positions(scores.shape, query.device)
    if score_mod is not None:
        scores = score_mod(scores, *positions).to(query.dtype)
    if block_mask is not None:
        if block_mask.seq_lengths != tuple(scores.shape[-2:]):
            raise ValueError(
                f"block_mask was created for block_mask.shape={block_mask.shape} but got "
                f"q_len={scores.size(-2)} and kv_len={scores.size(-1)}. As the block mask was created for a "
                "different length, please create it again."
            )
        scores = where(block_mask._allowed(positions), scores, -math.inf)
    empty = scores.isneginf().all(-1, keepdim=True)
    weights = where(empty, 0.0, softmax(where(empty, 0.0, scores), -1))
    output = matmul(weights, value)
    if return_aux is not None:
        lse = logsumexp(scores, -1) if return_aux.lse else None
        return output, AuxOutput(lse, scores.amax(-1) if return_aux.max_scores else None)
    return (output, logsumexp(scores, -1)) if return_lse else output
