"""Writes python/rustgrad/_aten_schemas.py: the overloads of ATen ops, their arguments and results, as a PyTorch installation names them.

    python tools/aten_schemas.py

Run it with a Python that has PyTorch. These names are those of files that `torch.export.save` writes; nothing else is taken over.
"""

import pathlib
import re

import torch

SKIPPED = re.compile(
    "cudnn|miopen|mkldnn|_mps|sparse|quantize|fbgemm|nested|foreach|fused|_cslt|vulkan|cufft|_xnn|fake_quant|coalesce|jagged|crow_ind|"
    "ccol|row_indices|col_indices|_choose_qp|rowwise_prune|_int_mm|_weight|_convert_weight|int4|int8|int_repr|q_|qint|qscheme|slow_|"
    "_thnn|_nnpack|_propagate|_test_|_make_per|_validate|^_efficient|^_flash|_cudnn|_scaled_mm|_scaled_grouped|_dyn_quant|_linalg_check|"
    "_copy_from|_spdiags|_ctc_loss|_amp_|_sobol|_has_|_shape_as|_reshape_from|_cummax_helper|_cummin_helper|_resize_output|"
    "_version|_debug_has|_backward_data|_functional_sym|_functional_assert|_print|_lazy|_saturate|_aminmax|_autocast|"
    "_neg_view|_conj_copy|_fw_primal|_make_dual|_unpack_dual|_batch_norm_impl|_segment|_rowwise|_pack_padded|_padded|_pad_packed|_pin_memory"
)
HEAD = '''"""The overloads of ATen ops as PyTorch names them: `name.overload(arguments) -> results`. Written by tools/aten_schemas.py."""

__all__ = ["SCHEMAS"]

# fmt: off
SCHEMAS = """\\
'''


def lines():
    for schema in torch._C._jit_get_all_schemas():
        text = str(schema)
        name = schema.name.removeprefix("aten::")
        if (
            not text.startswith("aten::")
            or SKIPPED.search(name)
            or re.fullmatch(r"(.*_)?out|grad_input|.*_t", schema.overload_name)
        ):
            continue
        if "Tensor" not in text or "Dimname" in text or "..." in text or "hacked_twin" in text or "Stream" in text:
            continue
        if schema.overload_name.startswith("prim") or re.search(r"\bt\[\]|\bAny\b|Dict\(|Future|int self", text):
            continue
        text = re.sub(r"Tensor\((\w+)!(?:[^()]*)\)", r"Tensor(\1!)", text.removeprefix("aten::"))
        text = re.sub(r"(Tensor(?:\[\])?)\([a-z](?: -> \*|\|[a-z])*\)", r"\1", text)
        yield text.replace("SymInt", "int")


if __name__ == "__main__":
    found = sorted(set(lines()) | {f"sym_{n}" for n in ("size.int(Tensor self, int dim) -> int", "stride.int(Tensor self, int dim) -> int", "numel(Tensor self) -> int", "storage_offset(Tensor self) -> int")})  # fmt: skip
    path = pathlib.Path(__file__).parent.parent / "python/rustgrad/_aten_schemas.py"
    path.write_text(HEAD + "\n".join(found) + '\n"""\n', encoding="utf-8")
