"""The passes of graph mode: fusion, observers, conversion. `quantize_fx` has the functions that programs call."""
