"""Settings of traces, with PyTorch's names and values: passes here show no progress, and nodes have traces where asked."""

disable_progress = True
verbose_progress = False
do_not_emit_stack_traces = False
