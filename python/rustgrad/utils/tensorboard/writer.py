"""`SummaryWriter` under its module name in PyTorch."""

from . import FileWriter as FileWriter
from . import SummaryWriter as SummaryWriter

__all__ = ["FileWriter", "SummaryWriter"]
