"""States of optimizers of tensors in pieces, of which there are none here."""

from .._refusals import refusing_function

__all__ = ["load_sharded_optimizer_state_dict"]

load_sharded_optimizer_state_dict = refusing_function(
    __name__, "load_sharded_optimizer_state_dict", "distributed.checkpoint.load takes states of whole tensors."
)


def __dir__() -> list[str]:
    return __all__
