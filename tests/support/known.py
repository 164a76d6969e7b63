"""What the table knows not to hold, with reasons. Strict: an entry that passes fails the run."""

# (property, or "property on device"; op) -> reason
XFAIL: dict[tuple[str, str], str] = {}

# Samples of a property that do not apply, by (property, public name): the reason.
NOT_ABOUT = {
    ("strided", "as_strided"): "reads the storage, not the elements",
    ("expanded", "as_strided"): "reads the storage, not the elements",
    ("strided", "Tensor.as_strided"): "reads the storage, not the elements",
    ("expanded", "Tensor.as_strided"): "reads the storage, not the elements",
}
