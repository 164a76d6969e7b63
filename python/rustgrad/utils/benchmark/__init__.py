"""`rustgrad.utils.benchmark`: `Timer` times a statement, `Measurement` holds the times, `Compare` prints several as a table."""

from ..._absent import getattr_of
from ._compare import Compare
from ._timer import Language, Measurement, TaskSpec, Timer, timer

__all__ = ["Compare", "Language", "Measurement", "TaskSpec", "Timer", "timer"]
__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
