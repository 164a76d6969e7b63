"""`rustgrad.distributed.checkpoint`: checkpoints in a directory, of one process or several, in PyTorch's format.

Files: `docs/decisions/distributed-checkpoints.md`.
"""

from __future__ import annotations

from ..._absent import getattr_of
from . import api as api
from . import default_planner as default_planner
from . import filesystem as filesystem
from . import metadata as metadata
from . import planner as planner
from . import planner_helpers as planner_helpers
from . import resharding as resharding
from . import staging as staging
from . import state_dict_loader as state_dict_loader
from . import state_dict_saver as state_dict_saver
from . import stateful as stateful
from . import storage as storage
from . import utils as utils
from ._fsspec_filesystem import FsspecReader as FsspecReader
from ._fsspec_filesystem import FsspecWriter as FsspecWriter
from .api import CheckpointException as CheckpointException
from .default_planner import DefaultLoadPlanner as DefaultLoadPlanner
from .default_planner import DefaultSavePlanner as DefaultSavePlanner
from .filesystem import FileSystemReader as FileSystemReader
from .filesystem import FileSystemWriter as FileSystemWriter
from .hf_storage import HuggingFaceStorageReader as HuggingFaceStorageReader
from .hf_storage import HuggingFaceStorageWriter as HuggingFaceStorageWriter
from .metadata import BytesStorageMetadata as BytesStorageMetadata
from .metadata import ChunkStorageMetadata as ChunkStorageMetadata
from .metadata import Metadata as Metadata
from .metadata import TensorStorageMetadata as TensorStorageMetadata
from .optimizer import load_sharded_optimizer_state_dict as load_sharded_optimizer_state_dict
from .planner import LoadPlan as LoadPlan
from .planner import LoadPlanner as LoadPlanner
from .planner import ReadItem as ReadItem
from .planner import SavePlan as SavePlan
from .planner import SavePlanner as SavePlanner
from .planner import WriteItem as WriteItem
from .state_dict_loader import load as load
from .state_dict_loader import load_state_dict as load_state_dict
from .state_dict_saver import async_save as async_save
from .state_dict_saver import save as save
from .state_dict_saver import save_state_dict as save_state_dict
from .storage import StorageReader as StorageReader
from .storage import StorageWriter as StorageWriter

__all__ = [
    "BytesStorageMetadata",
    "CheckpointException",
    "ChunkStorageMetadata",
    "DefaultLoadPlanner",
    "DefaultSavePlanner",
    "FileSystemReader",
    "FileSystemWriter",
    "FsspecReader",
    "FsspecWriter",
    "HuggingFaceStorageReader",
    "HuggingFaceStorageWriter",
    "LoadPlan",
    "LoadPlanner",
    "Metadata",
    "ReadItem",
    "SavePlan",
    "SavePlanner",
    "StorageReader",
    "StorageWriter",
    "TensorStorageMetadata",
    "WriteItem",
    "async_save",
    "load",
    "load_sharded_optimizer_state_dict",
    "load_state_dict",
    "save",
    "save_state_dict",
]

__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
