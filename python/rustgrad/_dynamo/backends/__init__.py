"""The place where programs look for backends of the compiler; see `rustgrad.compiler.list_backends`."""

from ..._absent import getattr_of

__all__: list[str] = []


__getattr__ = getattr_of(__name__)
