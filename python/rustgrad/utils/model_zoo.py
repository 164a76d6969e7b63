"""The former names of `rustgrad.hub`."""

from ..hub import load_state_dict_from_url as load_url

__all__ = ["load_url"]


def __getattr__(name: str) -> object:
    if name == "tqdm":
        # PyTorch keeps the progress bar's package here too; libraries take it from here.
        from tqdm import tqdm

        return tqdm
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
