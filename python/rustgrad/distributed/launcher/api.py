"""`elastic_launch`: calls a function in several processes of this machine, with the variables that `init_process_group` reads."""

from __future__ import annotations

import datetime
import os
import pickle
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..tcp_store import TCPStore

__all__ = ["LaunchConfig", "elastic_launch"]


@dataclass
class LaunchConfig:
    """How many processes: `min_nodes` and `max_nodes` are 1. Fields that are not used are accepted."""

    min_nodes: int = 1
    max_nodes: int = 1
    nproc_per_node: int = 1
    run_id: str = ""
    role: str = "default_role"
    rdzv_endpoint: str = ""
    rdzv_backend: str = "etcd"
    rdzv_configs: dict[str, Any] = field(default_factory=dict)
    rdzv_timeout: int = -1
    max_restarts: int = 3
    monitor_interval: float = 0.1
    start_method: str = "spawn"
    logs_specs: Any = None
    log_dir: str | None = None
    log_line_prefix_template: str | None = None
    metrics_cfg: dict[str, str] = field(default_factory=dict)
    local_addr: str | None = None


def _call(i, function, arguments, size, port, run_id, folder):

    os.environ.update(
        RANK=str(i),
        LOCAL_RANK=str(i),
        WORLD_SIZE=str(size),
        LOCAL_WORLD_SIZE=str(size),
        MASTER_ADDR="localhost",
        MASTER_PORT=str(port),
        TORCHELASTIC_RUN_ID=run_id or "none",
        TORCHELASTIC_USE_AGENT_STORE="True",
        TORCHELASTIC_RESTART_COUNT="0",
    )
    with open(os.path.join(folder, str(i)), "wb") as file:
        pickle.dump(function(*arguments), file)


class elastic_launch:
    """`elastic_launch(config, function)(*arguments)`: what the function returns, by rank.

    Raises:
        NotImplementedError: more machines than one. Use `distributed.run`.
        ProcessRaisedException, ProcessExitedException: a process has failed; it is not started again.
    """

    def __init__(self, config: LaunchConfig, entrypoint: Callable[..., Any] | str | None) -> None:
        if config.max_nodes != 1:
            raise NotImplementedError("elastic_launch: expected max_nodes=1. Use rustgrad.distributed.run.")
        if not callable(entrypoint):
            raise NotImplementedError(
                "elastic_launch: expected a function. Use rustgrad.distributed.run for a command."
            )
        self._config, self._function = config, entrypoint

    def __call__(self, *args: Any) -> dict[int, Any]:

        from ...multiprocessing import start_processes

        config, size = self._config, self._config.nproc_per_node
        store = TCPStore("localhost", 0, is_master=True, timeout=datetime.timedelta(seconds=600))
        with tempfile.TemporaryDirectory(prefix="rustgrad-launch-") as folder:
            given = (self._function, args, size, store.port, config.run_id, folder)
            start_processes(_call, given, nprocs=size, start_method=config.start_method)
            results = {}
            for i in range(size):
                with open(os.path.join(folder, str(i)), "rb") as file:
                    results[i] = pickle.load(file)
            return results
