"""How a joint graph is divided into that of the results and that of the gradients."""

from __future__ import annotations

from typing import Any, NoReturn

from .._absent import getattr_of

__all__ = ["default_partition"]


def default_partition(joint_module: Any, _joint_inputs: Any, *, num_fwd_outputs: int, **settings: Any) -> NoReturn:
    """The `partition_fn` of `aot_function`: what gradients need of the results' graph is kept.

    Raises:
        NotImplementedError: it is called: joint graphs are divided where they are made.
    """
    raise NotImplementedError(
        "default_partition: joint graphs are divided by aot_function; expected it as partition_fn"
    )


__getattr__ = getattr_of(__name__)
