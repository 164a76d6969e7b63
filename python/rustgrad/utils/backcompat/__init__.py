"""Switches of warnings about code for PyTorch before 0.2. As in PyTorch, they are kept, and no op asks for them any more."""

__all__ = ["broadcast_warning", "keepdim_warning"]


class Warning:
    """A switch: `enabled`."""

    enabled = False

    def set_enabled(self, value: bool) -> None:
        self.enabled = value

    def get_enabled(self) -> bool:
        return self.enabled


broadcast_warning, keepdim_warning = Warning(), Warning()


def __dir__() -> list[str]:
    return __all__
