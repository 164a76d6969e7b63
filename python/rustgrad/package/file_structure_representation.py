"""PyTorch's module of the tree of files."""

from .glob_group import Directory as Directory
