"""Names that a module of PyTorch has and that another module defines here: helpers, types, functions under a second name.

Programs import them by PyTorch's paths. A module looks here (`_absent.getattr_of`) for a name that it lacks; nothing is
imported before.
"""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["MISSING", "find"]

MISSING: Any = object()
_OVERRIDES = "handle_torch_function has_torch_function has_torch_function_unary has_torch_function_variadic"
_SIZES = "_ratio_2_t _ratio_3_t _size_1_t _size_2_t _size_3_t _size_any_opt_t _size_any_t"
_TUPLES = "_ntuple _pair _quadruple _single _triple"

# Module: {where: names}; `name=other` where the other module calls it otherwise, "." for its own submodules.
_NAMES: dict[str, dict[str, str]] = {
    "_functorch_names": {"fx.experimental.proxy_tensor": "make_fx"},
    "": {
        "_wrapper_names": "_has_compatible_shallow_copy_type",
        ".": "_VF _compile _guards _higher_order_ops _jit_internal _library _linalg_utils _logging _lowrank _prims_common "
        "_sources _subclasses _tensor_str _utils_internal _vendor _weights_only_unpickler torch_version",
        "_symbolic": "_shape_as_tensor legacy_contiguous_format sym_float sym_int sym_ite sym_max sym_min sym_not sym_sqrt sym_sum",
        "_compile": "_disable_dynamo",
        "_higher_order_ops.control_flow": "cond while_loop",
        "_utils_names": "classproperty set_vital",
        "storage": "StorageBase=UntypedStorage",
        "nn._functional_names": "_log_softmax_backward_data _softmax_backward_data",
    },
    "_dynamo": {".": "exc external_utils utils", "_dynamo.external_utils": "optimize"},
    "_dynamo.eval_frame": {"_dynamo": "is_dynamo_supported", "_dynamo.external_utils": "optimize"},
    "_inductor": {"compiler": "cudagraph_mark_step_begin"},
    "_tensor": {
        "_utils": "_rebuild_from_type_v2",
        "_utils_names": "_convert _handle_torch_function_and_wrap_type_error_to_not_implemented _rebuild_from_type",
        "overrides": f"get_default_nowrap_functions {_OVERRIDES}",
    },
    "_utils": {
        "_utils_names": "_ClassPropertyDescriptor _get_all_device_indices _get_available_device_type _get_current_device_index "
        "_get_device_attr _get_device_module _get_obj_state _handle_complex _import_dotted_name _reorder_tensors_as "
        "_set_obj_state _take_tensors _to _type classproperty cpu_count is_compiling render_call try_import",
    },
    "autograd": {
        ".": "profiler_legacy profiler_util",
        "profiler": "kineto_available",
        "autograd._names": "_calculate_shape _engine_run_backward _is_checkpoint_valid _make_grads "
        "_tensor_or_tensors_to_tuple",
    },
    "autograd.function": {"autograd._names": "_iter_tensors _nested_map"},
    "autograd.functional": {"autograd._names": "_check_requires_grad"},
    "autograd.gradcheck": {"autograd._names": "get_analytical_jacobian get_numerical_jacobian"},
    "autograd.graph": {"autograd._names": "_engine_run_backward"},
    "autograd.variable": {"autograd.variable": "ImperativeEngine=_Engine"},
    "distributed": {
        ".": "_functional_collectives algorithms autograd checkpoint constants device_mesh distributed_c10d elastic fsdp launch "
        "launcher nn optim rpc run tensor utils",
        "distributed.device_mesh": "DeviceMesh init_device_mesh",
    },
    "distributed._functional_collectives": {"_wrapper_names": "AsyncCollectiveTensor"},
    "distributed.distributed_c10d": {
        "distributed.constants": "default_pg_nccl_timeout",
        "distributed.group": "_get_global_rank=get_global_rank",
    },
    "distributed.fsdp": {
        ".": "api fully_sharded_data_parallel wrap",
        "distributed.fsdp.api": "CPUOffloadPolicy FullOptimStateDictConfig FullStateDictConfig LocalOptimStateDictConfig "
        "LocalStateDictConfig OffloadPolicy OptimStateDictConfig ShardedOptimStateDictConfig ShardedStateDictConfig "
        "StateDictConfig StateDictSettings",
    },
    "distributed.fsdp.fully_sharded_data_parallel": {
        "distributed.fsdp.api": "FullOptimStateDictConfig FullStateDictConfig LocalOptimStateDictConfig LocalStateDictConfig "
        "OptimStateDictConfig ShardedOptimStateDictConfig ShardedStateDictConfig StateDictConfig StateDictSettings",
    },
    "functional": {
        "nn.functional": "F=",
        "_base": "Tensor",
        "overrides": _OVERRIDES,
        "_jit_internal": "boolean_dispatch",
    },
    "hub": {"_progress": "tqdm"},
    "jit": {
        ".": "_script _trace annotations",
        "jit._script": "RecursiveScriptModule",
        "jit._trace": "TopLevelTracedModule TracedModule",
        "futures": "Future",
    },
    "jit.annotations": {"_jit_internal": "is_dict is_list is_optional is_tuple is_union"},
    "sparse": {
        "_wrapper_names": "SparseSemiStructuredTensor SparseSemiStructuredTensorCUSPARSELT SparseSemiStructuredTensorCUTLASS"
    },
    "nn": {".": "_reduction common_types intrinsic qat quantizable quantized"},
    "nn.functional": {
        "_wrapper_names": "ScalingType SwizzleType scaled_grouped_mm",
        "nn._functional_names": "_check_key_padding_mask _get_softmax_dim _in_projection _is_integer "
        "_no_grad_embedding_renorm_ _verify_batch_size _verify_spatial_size assert_int_or_pair",
        "nn._attention": "_in_projection_packed",
        "nn._pooling": "_unpool_output_size=_unpooled_size",
        "nn.modules.utils": "_list_with_default _pair _single _triple",
        "nn._reduction": "_Reduction=",
        "nn.common_types": "BroadcastingList1=_size_1_t BroadcastingList2=_size_2_t BroadcastingList3=_size_3_t",
        "_jit_internal": "_overload boolean_dispatch",
        "_VF": "_VF=",
        "": "_sym_int=sym_int DType=dtype Tensor",
        "overrides": _OVERRIDES,
    },
    "nn.init": {
        "nn.init": "_no_grad_fill_=constant_ _no_grad_normal_=normal_ _no_grad_trunc_normal_=trunc_normal_ "
        "_no_grad_uniform_=uniform_ _no_grad_zero_=zeros_"
    },
    "nn.modules.activation": {"nn._functional_names": "_arg_requires_grad _check_arg_device _is_make_fx_tracing"},
    "nn.modules.batchnorm": {"nn.parameter": "UninitializedBuffer UninitializedParameter", "nn": "init"},
    "nn.modules.container": {"_jit_internal": "_copy_to_script_wrapper", "nn.parameter": "Parameter"},
    "nn.modules.conv": {
        "nn.functional": "F=",
        "nn._functional_names": "_ConvTransposeMixin",
        "nn.modules.utils": f"_reverse_repeat_tuple {_TUPLES}",
        "nn.common_types": _SIZES,
    },
    "nn.modules.lazy": {"nn._functional_names": "_LazyProtocol"},
    "nn.modules.module": {
        "nn._functional_names": "T T_destination _grad_t _has_any_global_hook",
        "nn.modules._state": "_WrappedHook",
    },
    "nn.modules.normalization": {"nn._functional_names": "_shape_t", "nn.common_types": _SIZES},
    "nn.modules.pooling": {"nn.common_types": _SIZES, "nn.modules.utils": _TUPLES},
    "nn.modules.rnn": {"nn._functional_names": "_apply_permutation apply_permutation"},
    "nn.parallel": {".": "_functions comm distributed", "nn.parallel.distributed": "DistributedDataParallel"},
    "nn.utils": {".": "_named_member_accessor _per_sample_grad"},
    "nn.utils.clip_grad": {
        "nn.utils.clip_grad": "_clip_grad_norm=clip_grad_norm_ _clip_grads_with_norm_=clip_grads_with_norm_ "
        "_get_total_norm=get_total_norm _no_grad=no_grad",
        "utils._foreach_utils": "_device_has_foreach_support _group_tensors_by_device_and_dtype _has_foreach_support",
    },
    "nn.utils.convert_parameters": {"nn._functional_names": "_check_param_device"},
    "optim.lr_scheduler": {
        "optim._lr_names": "_enable_get_lr_call _initial_mode _warn_get_lr_called_within_step",
        "optim._lr_base": "_param_groups_val_list=copy_values _update_param_group_val=set_value",
    },
    "profiler": {".": "profiler"},
    "utils": {
        ".": "_contextlib _device _exposed_in _import_utils _mode_utils _ordered_set _python_dispatch _traceback _triton "
        "_typing_utils file_baton"
    },
    "utils.benchmark": {".": "utils"},
    "utils.checkpoint": {
        "utils._checkpoint_names": "_default_meta_extractor _get_autocast_kwargs _get_device_module _infer_device_type"
    },
    "utils.data": {
        "utils.data.dataloader": "_DatasetKind",
        ".": "_utils datapipes graph graph_settings",
        "utils.data.datapipes.datapipe": "DFIterDataPipe DataChunk IterDataPipe MapDataPipe",
        "utils.data.datapipes._decorator": "argument_validation functional_datapipe guaranteed_datapipes_determinism "
        "non_deterministic runtime_validation runtime_validation_disabled",
    },
    "utils.data._utils.worker": {"utils.data._process_main": "_generate_state"},
    "utils.data.dataset": {"utils.data.dataset": "_T_co=T_co"},
}


def _imported(path: str) -> Any:
    root = __package__
    return importlib.import_module(f"{root}.{path}" if path else root)


def find(module: str, name: str) -> Any:
    """The value of a name that a module of this package lacks, or `MISSING`."""
    own = module.partition(".")[2]
    for where, names in _NAMES.get(own, {}).items():
        for text in names.split():
            exported, renamed, original = text.partition("=")
            if exported != name:
                continue
            if where == ".":
                return _imported(f"{own}.{name}" if own else name)
            source = _imported(where)
            return source if renamed and not original else getattr(source, original or name)
    return MISSING
