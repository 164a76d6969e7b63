"""`ops.quantized`: embeddings whose rows are integers, each with a scale and a zero point of its own."""

from __future__ import annotations

from typing import Any

OPS: dict[str, Any] = {}
