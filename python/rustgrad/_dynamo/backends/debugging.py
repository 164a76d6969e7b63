"""The place where programs look for the class of what `explain` answers."""

from ..._absent import getattr_of
from ...compiler._explain import Explanation as ExplainOutput

__all__ = ["ExplainOutput"]


__getattr__ = getattr_of(__name__)
