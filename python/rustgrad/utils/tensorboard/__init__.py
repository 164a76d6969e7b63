"""`SummaryWriter`: logs for TensorBoard, written by the package tensorboardX (`pip install rustgrad[tensorboard]`)."""

try:
    from tensorboardX import FileWriter as FileWriter
    from tensorboardX import SummaryWriter as SummaryWriter
    from tensorboardX.record_writer import RecordWriter as RecordWriter
except ImportError as error:
    raise ImportError(
        "rustgrad.utils.tensorboard: needs the package tensorboardX. Install it with `pip install rustgrad[tensorboard]`.",
        name="tensorboardX",
    ) from error

__all__ = ["FileWriter", "RecordWriter", "SummaryWriter"]
