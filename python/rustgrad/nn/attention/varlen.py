"""Attention over packed sequences of different lengths: each sequence attends to itself, in one tensor and without padding.

PyTorch has it for CUDA alone. Here it is one `F.scaled_dot_product_attention` per sequence, on any device and of any
floating dtype.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ... import _C
from ..._base import Tensor, arange, cat, ops
from ...autograd import no_grad
from ..functional import scaled_dot_product_attention

__all__ = ["AuxRequest", "varlen_attn", "varlen_attn_out"]


class AuxRequest(NamedTuple):
    """What `varlen_attn` returns beside its result. `lse`: the logarithm of the sum of exponentials of each query's scores."""

    lse: bool = False


def _check(query, key, scale, window_size, enable_gqa, seqused_k, block_table):
    heads, key_heads = query.size(1), key.size(1 if block_table is None else 2)
    if not enable_gqa and heads != key_heads:
        raise ValueError(
            "Expect query and key/value to have the same number of heads "
            f"but got Hq={heads} and Hkv={key_heads}. Try setting enable_gqa=True for GQA."
        )
    if heads % key_heads:
        raise ValueError(
            f"Expect number of query heads to be a multiple of kv heads for GQA but got Hq={heads} and Hkv={key_heads}."
        )
    if scale is not None and not scale > 0:
        raise ValueError(f"scale must be greater than 0, got {scale}")
    if len(window_size) != 2:
        raise ValueError(f"window_size must have length 2, got {len(window_size)}")
    if block_table is not None and seqused_k is None:
        raise ValueError("block_table requires seqused_k: the last page of a sequence may be filled in part")


def _keys(
    key: Tensor, value: Tensor, cu_seq_k: Tensor | None, seqused_k: Tensor | None, block_table: Tensor | None
) -> Iterator[tuple[Tensor, Tensor]]:
    """The keys and values of each sequence."""
    used = None if seqused_k is None else seqused_k.tolist()
    if block_table is not None:
        for pages, count in zip(block_table, used or [], strict=True):
            pages = pages[: -(-count // key.size(1))].long()
            yield key[pages].flatten(0, 1)[:count], value[pages].flatten(0, 1)[:count]
        return
    if cu_seq_k is None:
        raise ValueError("varlen_attn: expected cu_seq_k, which only keys in pages (block_table) do without")
    bounds = cu_seq_k.tolist()
    for i, (start, stop) in enumerate(zip(bounds, bounds[1:], strict=False)):
        stop = stop if used is None else min(stop, start + used[i])
        yield key[start:stop], value[start:stop]


def _seen(queries: int, keys: int, window: tuple[int, int], device: _C.device) -> Tensor | None:
    """Which keys each query sees; None for all. The last query is beside the last key."""
    left, right = window
    if left < 0 and right < 0:
        return None
    distance = arange(keys, device=device) - (arange(queries, device=device)[:, None] + keys - queries)
    seen = distance <= (right if right >= 0 else keys + queries)
    return seen if left < 0 else seen & (distance >= -left)


def _log_sum_exp(q: Tensor, k: Tensor, scale: float | None, seen: Tensor | None) -> Tensor:
    """Of the scores of each query, with infinity for one that sees no key."""
    k = k.repeat_interleave(q.size(0) // k.size(0), 0)
    scores = (q.float() @ k.float().mT) * (q.size(-1) ** -0.5 if scale is None else scale)
    if seen is not None:
        scores = scores.masked_fill(~seen, -float("inf"))
    made = ops["logsumexp"](scores, -1)
    return made.masked_fill(made == -float("inf"), float("inf"))


def _attend(query, key, value, cu_seq_q, cu_seq_k, longest, scale, window, gqa, seqused_k, block_table, lse):
    """The result, and the log-sum-exp where it is asked for."""
    bounds, made, sums = cu_seq_q.tolist(), [], []
    spans = zip(bounds, bounds[1:], strict=False)
    for (start, stop), (k, v) in zip(spans, _keys(key, value, cu_seq_k, seqused_k, block_table), strict=True):
        for name, length, limit in (("max_q", stop - start, longest[0]), ("max_k", len(k), longest[1])):
            if length > limit:
                raise ValueError(f"varlen_attn: expected sequences of at most {name}={limit}, got one of {length}")
        q, k, v = (t.transpose(0, 1) for t in (query[start:stop], k, v))
        seen = _seen(q.size(1), k.size(1), window, query.device)
        made.append(scaled_dot_product_attention(q, k, v, seen, scale=scale, enable_gqa=gqa).transpose(0, 1))
        if lse:
            with no_grad():
                sums.append(_log_sum_exp(q, k, scale, seen))
    return cat(made), cat(sums, 1) if lse else None


def varlen_attn(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seq_q: Tensor,
    cu_seq_k: Tensor | None,
    max_q: int,
    max_k: int,
    *,
    return_aux: AuxRequest | None = None,
    scale: float | None = None,
    window_size: tuple[int, int] = (-1, -1),
    enable_gqa: bool = False,
    seqused_k: Tensor | None = None,
    block_table: Tensor | None = None,
    num_splits: int | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    """Scaled dot product attention of each sequence among its own tokens, for sequences packed one after another.

    Args:
        query (Tensor): shape (T_q, H_q, D), T_q the number of tokens of all sequences.
        key, value (Tensor): shape (T_k, H_kv, D); with `block_table` a pool of pages (pages, page_size, H_kv, D).
        cu_seq_q, cu_seq_k (Tensor): where the sequences begin, and the end of the last: shape (N + 1,).
        max_q, max_k (int): the length of the longest sequence.
        return_aux (AuxRequest, optional): with `lse`, the log-sum-exp of scores of shape (H_q, T_q) is returned too.
        scale (float, optional): the positive factor of the scores; by default 1 / sqrt(D).
        window_size (tuple): how many keys to the left and right of its own place a query sees; -1 for all. (-1, 0) is causal.
            Where a sequence has more keys than queries, the last query is beside the last key.
        enable_gqa (bool): whether several heads of queries share a head of keys.
        seqused_k (Tensor, optional): how many keys of each sequence are valid, shape (N,). For inference only.
        block_table (Tensor, optional): the pages of each sequence, shape (N, pages). For inference only.
        num_splits (int, optional): how CUDA divides the work; nothing here, where results do not depend on the batch.

    Raises:
        ValueError: arguments contradict each other.
        RuntimeError: `seqused_k` or `block_table` where a gradient is asked for.
    """
    _check(query, key, scale, window_size, enable_gqa, seqused_k, block_table)
    if _C.is_grad_enabled() and any(t.requires_grad for t in (query, key, value)):
        for name, given in (("seqused_k", seqused_k), ("block_table", block_table)):
            if given is not None:
                raise RuntimeError(f"{name} is an inference-only parameter.")
    lse = return_aux is not None and return_aux.lse
    window = (window_size[0], window_size[1])
    made, sums = _attend(
        query, key, value, cu_seq_q, cu_seq_k, (max_q, max_k), scale, window, enable_gqa, seqused_k, block_table, lse
    )
    return (made, sums) if lse else made


def varlen_attn_out(
    out: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seq_q: Tensor,
    cu_seq_k: Tensor | None,
    max_q: int,
    max_k: int,
    *,
    return_aux: AuxRequest | None = None,
    scale: float | None = None,
    window_size: tuple[int, int] = (-1, -1),
    enable_gqa: bool = False,
    seqused_k: Tensor | None = None,
    block_table: Tensor | None = None,
    num_splits: int | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    """`varlen_attn` into `out`, without a gradient."""
    with no_grad():
        made = varlen_attn(
            query,
            key,
            value,
            cu_seq_q,
            cu_seq_k,
            max_q,
            max_k,
            return_aux=return_aux,
            scale=scale,
            window_size=window_size,
            enable_gqa=enable_gqa,
            seqused_k=seqused_k,
            block_table=block_table,
            num_splits=num_splits,
        )
        found, *sums = made if isinstance(made, tuple) else (made,)
        out.copy_(found)
    return (out, *sums) if sums else out


def __dir__() -> list[str]:
    return __all__
