"""`HistogramObserver`: a histogram of all values, and the range of it that is quantised with the least squared error."""

from __future__ import annotations

import warnings
from typing import Any

import rustgrad as torch

from ..._quantized._quantizer import f32
from .observer import _EPS, UniformQuantizationObserverBase
from .utils import is_per_tensor

__all__: list[str] = []

# By how much bins are divided before they are moved to another range.
_FINER = 16
# The share of the values by which the search moves an end of the range.
_STEP = 1e-5


class HistogramObserver(UniformQuantizationObserverBase):
    """A histogram of the values that were seen; the range is that with the least error: see `UniformQuantizationObserverBase`.

    Args:
        bins (int): of the histogram.
    """

    histogram: Any
    min_val: Any
    max_val: Any

    def __init__(
        self, bins: int = 2048, dtype: Any = torch.quint8, qscheme: Any = torch.per_tensor_affine, reduce_range: bool = False,
        quant_min: Any = None, quant_max: Any = None, factory_kwargs: Any = None, eps: float = _EPS, is_dynamic: bool = False,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        if not is_per_tensor(qscheme):
            raise NotImplementedError(
                "HistogramObserver's qscheme only support torch.per_tensor_symmetric                     and "
                "torch.per_tensor_affine."
            )
        if is_dynamic:
            raise NotImplementedError("HistogramObserver doesn't support dynamic quantization")
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps, is_dynamic, **kwargs)
        made = factory_kwargs or {}
        self.bins = bins
        self.register_buffer("histogram", torch.zeros(bins, **made))
        self.register_buffer("min_val", torch.tensor(float("inf"), **made))
        self.register_buffer("max_val", torch.tensor(float("-inf"), **made))
        self.dst_nbins = 2 ** torch.iinfo(dtype).bits
        self.upsample_rate = _FINER

    # --- seeing ------------------------------------------------------------------------------------------------
    def forward(self, x_orig: Any) -> Any:
        """Adds the values to the histogram; returns the tensor. Infinite values are left out, with a warning."""
        if x_orig.numel() == 0:
            return x_orig
        x = x_orig.detach()
        low, high = torch.aminmax(x)
        if low == -torch.inf or high == torch.inf:
            warnings.warn("torch.inf detected in input tensor, ignoring input", stacklevel=2)
            x = x[x.abs() != torch.inf]
            if x.numel() == 0:
                return x_orig
            low, high = torch.aminmax(x)
        if self.min_val == float("inf") or self.max_val == float("-inf"):
            self.reset_histogram(x, low, high)
            return x_orig
        new_low, new_high = torch.min(self.min_val, low), torch.max(self.max_val, high)
        update = self._counts(x, new_low, new_high)
        combined = self._combine_histograms(self.histogram, self.min_val, self.max_val, update, new_low, new_high)
        self.histogram.detach_().resize_(combined.shape)
        self.histogram.copy_(combined)
        self._set_range(new_low, new_high)
        return x_orig

    def _counts(self, x, low, high):
        return torch.histc(x, self.bins, min=float(low), max=float(high))

    def _set_range(self, low, high):
        for kept, value in ((self.min_val, low), (self.max_val, high)):
            kept.detach_().resize_(value.shape)
            kept.copy_(value)

    def reset_histogram(self, x: Any, min_val: Any, max_val: Any) -> None:
        """Begins a histogram with the values of a tensor and a range."""
        self._set_range(min_val, max_val)
        counts = self._counts(x, min_val, max_val)
        self.histogram.detach_().resize_(counts.shape)
        self.histogram.copy_(counts)

    def _upscale_histogram(self, histogram, orig_min, orig_max, update_min, update_max):
        """A histogram over another range: each bin in parts, which go where their middles are."""
        parts = self.bins * self.upsample_rate
        fine = histogram.repeat_interleave(self.upsample_rate) / self.upsample_rate
        width = (orig_max - orig_min) / parts
        middles = torch.linspace(float(orig_min), float(orig_max), parts + 1)[:-1] + 0.5 * width
        bounds = torch.linspace(float(update_min), float(update_max), self.bins + 1)
        where = torch.bucketize(middles, bounds, right=True) - 1
        return torch.bincount(where, weights=fine, minlength=self.bins)

    def _combine_histograms(self, orig_hist, orig_min, orig_max, update_hist, update_min, update_max):
        """The sum of two histograms, of which the second has the range of the sum."""
        if update_min == orig_min and update_max == orig_max:
            return orig_hist + update_hist
        if orig_min == orig_max:
            one = self._counts(orig_min, update_min, update_max)
            return one * torch.sum(orig_hist) + update_hist
        if not (update_min <= orig_min and update_max >= orig_max):
            raise AssertionError("the range of the second histogram does not hold that of the first")
        moved = self._upscale_histogram(orig_hist.to(torch.float32), orig_min, orig_max, update_min, update_max)
        return update_hist + moved

    # --- the range ---------------------------------------------------------------------------------------------
    def _get_norm(self, delta_begin, delta_end, density):
        """The squared error of evenly spread values between two distances from what they are rounded to."""
        return density * ((delta_end * delta_end * delta_end - delta_begin * delta_begin * delta_begin) / 3)

    def _compute_quantization_error(self, next_start_bin, next_end_bin):
        """The squared error where the bins from one to another are quantised, and others are clamped."""
        width = (self.max_val.item() - self.min_val.item()) / self.bins
        wide = width * (next_end_bin - next_start_bin + 1) / self.dst_nbins
        if wide == 0.0:
            return 0.0
        begins = (torch.arange(self.bins) - next_start_bin) * width
        ends = begins + width
        last = self.dst_nbins - 1
        at_begin = torch.clamp(torch.div(begins, wide, rounding_mode="floor"), 0, last)
        at_end = torch.clamp(torch.div(ends, wide, rounding_mode="floor"), 0, last)
        density = self.histogram / width
        half = torch.tensor(wide / 2)
        norm = self._get_norm(begins - (at_begin + 0.5) * wide, torch.ones(self.bins) * half, density)
        norm = norm + (at_end - at_begin - 1) * self._get_norm(-half, half, density)
        norm = norm + self._get_norm(-half, ends - (at_end * wide + wide / 2), density)
        return norm.sum().item()

    def _non_linear_param_search(self):
        """The least and the greatest value of the best range: ends move inwards by shares of the values until the error grows."""
        if self.histogram.shape[0] != self.bins:
            raise AssertionError("bins mismatch")
        total = torch.sum(self.histogram).item()
        sums = torch.cumsum(self.histogram, dim=0).tolist()
        below, above, start, end, least = 0.0, 1.0, 0, self.bins - 1, float("inf")
        while below < above:
            next_below, next_above = below + _STEP, above - _STEP
            left, right = start, end
            bound = f32(next_below * total)
            while left < end and sums[left] < bound:
                left += 1
            bound = f32(next_above * total)
            while right > start and sums[right] > bound:
                right -= 1
            next_start, next_end = start, end
            if left - start > end - right:
                next_start, below = left, next_below
            else:
                next_end, above = right, next_above
            if (next_start, next_end) == (start, end):
                continue
            error = self._compute_quantization_error(next_start, next_end)
            if error > least:
                break
            least, start, end = error, next_start, next_end
        width = (self.max_val - self.min_val) / self.bins
        return self.min_val + width * start, self.min_val + width * (end + 1)

    def calculate_qparams(self) -> Any:  # type: ignore[override]
        """The scale and the zero point of the range with the least error."""
        if self.min_val == float("inf") and self.max_val == float("-inf"):
            warnings.warn(
                "must run observer before calling calculate_qparams.                                    Returning default scale "
                "and zero point ",
                stacklevel=2,
            )
            return torch.tensor([1.0], device=self.min_val.device.type), torch.tensor(
                [0], device=self.min_val.device.type
            )
        if self.bins != len(self.histogram):
            raise AssertionError(
                "The number of bins in histogram should be equal to the number of bins supplied while making this observer"
            )
        return self._calculate_qparams(*self._non_linear_param_search())

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):  # fmt: skip
        version = local_metadata.get("version", None)
        if version is None or version < 3:
            # The range was a tensor with one dimension.
            for name, start in (("min_val", float("inf")), ("max_val", float("-inf"))):
                found = state_dict.get(prefix + name)
                if found is not None and found.shape == torch.Size([0]):
                    state_dict[prefix + name] = torch.tensor(start)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )

    def extra_repr(self) -> str:
        """The range."""
        return f"min_val={self.min_val}, max_val={self.max_val}"


HistogramObserver.__module__ = UniformQuantizationObserverBase.__module__


def __dir__() -> list[str]:
    return __all__
