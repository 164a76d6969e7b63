"""The schema of a function with annotations: `infer_schema`."""

from ..library import infer_schema

__all__ = ["infer_schema"]
