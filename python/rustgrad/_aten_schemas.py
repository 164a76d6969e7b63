"""The overloads of ATen ops as PyTorch names them: `name.overload(arguments) -> results`. Written by tools/aten_schemas.py."""

__all__ = ["SCHEMAS"]

# fmt: off
SCHEMAS = """\
Bool.Tensor(Tensor a) -> bool
Complex.Tensor_Tensor(Tensor a, Tensor b) -> complex
Complex.Tensor_bool(Tensor x, bool y) -> complex
Complex.Tensor_float(Tensor x, float y) -> complex
Complex.Tensor_int(Tensor x, int y) -> complex
Complex.bool_Tensor(bool x, Tensor y) -> complex
Complex.float_Tensor(float x, Tensor y) -> complex
Complex.int_Tensor(int x, Tensor y) -> complex
ComplexImplicit(Tensor a) -> complex
Float.Tensor(Tensor a) -> float
FloatImplicit(Tensor a) -> float
Int.Tensor(Tensor a) -> int
IntImplicit(Tensor a) -> int
ScalarImplicit(Tensor a) -> Scalar
__and__.Scalar(Tensor self, Scalar other) -> Tensor
__and__.Tensor(Tensor self, Tensor other) -> Tensor
__iand__.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)
__iand__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)
__ilshift__.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)
__ilshift__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)
__interpolate(Tensor input, int? size=None, float? scale_factor=None, str mode="nearest", bool? align_corners=None, bool? recompute_scale_factor=None, bool antialias=False) -> Tensor
__interpolate.scale_list(Tensor input, int? size=None, float[]? scale_factor=None, str mode="nearest", bool? align_corners=None, bool? recompute_scale_factor=None, bool antialias=False) -> Tensor
__interpolate.size_list(Tensor input, int[]? size=None, float? scale_factor=None, str mode="nearest", bool? align_corners=None, bool? recompute_scale_factor=None, bool antialias=False) -> Tensor
__interpolate.size_list_scale_list(Tensor input, int[]? size=None, float[]? scale_factor=None, str mode="nearest", bool? align_corners=None, bool? recompute_scale_factor=None, bool antialias=False) -> Tensor
__ior__.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)
__ior__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)
__irshift__.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)
__irshift__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)
__ixor__.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)
__ixor__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)
__lshift__.Scalar(Tensor self, Scalar other) -> Tensor
__lshift__.Tensor(Tensor self, Tensor other) -> Tensor
__or__.Scalar(Tensor self, Scalar other) -> Tensor
__or__.Tensor(Tensor self, Tensor other) -> Tensor
__rshift__.Scalar(Tensor self, Scalar other) -> Tensor
__rshift__.Tensor(Tensor self, Tensor other) -> Tensor
__upsample(Tensor input, int? size=None, int? scale_factor=None, str mode="nearest", bool? align_corners=None) -> Tensor
__upsample.size_list(Tensor input, int[]? size=None, int? scale_factor=None, str mode="nearest", bool? align_corners=None) -> Tensor
__upsample_bilinear(Tensor input, int? size=None, int? scale_factor=None) -> Tensor
__upsample_bilinear.scale_list(Tensor input, int? size=None, int[]? scale_factor=None) -> Tensor
__upsample_bilinear.size_list(Tensor input, int[]? size=None, int? scale_factor=None) -> Tensor
__upsample_bilinear.size_list_scale_list(Tensor input, int[]? size=None, int[]? scale_factor=None) -> Tensor
__upsample_nearest(Tensor input, int? size=None, int? scale_factor=None) -> Tensor
__upsample_nearest.size_list(Tensor input, int[]? size=None, int? scale_factor=None) -> Tensor
__xor__.Scalar(Tensor self, Scalar other) -> Tensor
__xor__.Tensor(Tensor self, Tensor other) -> Tensor
_adaptive_avg_pool2d(Tensor self, int[2] output_size) -> Tensor
_adaptive_avg_pool2d_backward(Tensor grad_output, Tensor self) -> Tensor
_adaptive_avg_pool3d(Tensor self, int[3] output_size) -> Tensor
_adaptive_avg_pool3d_backward(Tensor grad_output, Tensor self) -> Tensor
_add_batch_dim(Tensor self, int batch_dim, int level) -> Tensor
_add_relu.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor
_add_relu.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
_add_relu_.Scalar(Tensor(a!) self, Scalar other, Scalar alpha=1) -> Tensor(a!)
_add_relu_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)
_addmm_activation(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1, bool use_gelu=False) -> Tensor
_assert_async(Tensor self) -> ()
_assert_async.msg(Tensor self, str assert_msg) -> ()
_assert_tensor_metadata(Tensor a, int[]? size=None, int[]? stride=None, ScalarType? dtype=None, *, Device? device=None, Layout? layout=None) -> ()
_backward(Tensor self, Tensor[] inputs, Tensor? gradient=None, bool? retain_graph=None, bool create_graph=False) -> ()
_batch_norm_no_update(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)
_batch_norm_with_update(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, Tensor(b!) running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)
_batch_norm_with_update_functional(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor, Tensor running_mean_out, Tensor running_var_out)
_cast_Byte(Tensor self, bool non_blocking=False) -> Tensor
_cast_Char(Tensor self, bool non_blocking=False) -> Tensor
_cast_Double(Tensor self, bool non_blocking=False) -> Tensor
_cast_Float(Tensor self, bool non_blocking=False) -> Tensor
_cast_Half(Tensor self, bool non_blocking=False) -> Tensor
_cast_Int(Tensor self, bool non_blocking=False) -> Tensor
_cast_Long(Tensor self, bool non_blocking=False) -> Tensor
_cast_Short(Tensor self, bool non_blocking=False) -> Tensor
_cdist_backward(Tensor grad_output, Tensor x1, Tensor x2, float p, Tensor cdist) -> Tensor
_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor
_cholesky_solve_helper(Tensor self, Tensor A, bool upper) -> Tensor
_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor
_compute_linear_combination(Tensor input, Tensor coefficients) -> Tensor
_conj(Tensor self) -> Tensor
_conj_physical(Tensor self) -> Tensor
_conv_depthwise2d(Tensor self, Tensor weight, int[2] kernel_size, Tensor? bias, int[2] stride, int[2] padding, int[2] dilation) -> Tensor
_convert_indices_from_coo_to_csr(Tensor self, int size, *, bool out_int32=False) -> Tensor
_convert_indices_from_csr_to_coo(Tensor crow_indices, Tensor col_indices, *, bool out_int32=False, bool transpose=False) -> Tensor
_convolution(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, bool transposed, int[] output_padding, int groups, bool benchmark, bool deterministic, bool cudnn_enabled, bool allow_tf32) -> Tensor
_convolution.deprecated(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, bool transposed, int[] output_padding, int groups, bool benchmark, bool deterministic, bool cudnn_enabled) -> Tensor
_convolution_double_backward(Tensor? ggI, Tensor? ggW, Tensor? ggb, Tensor gO, Tensor weight, Tensor self, int[] stride, int[] padding, int[] dilation, bool transposed, int[] output_padding, int groups, bool[3] output_mask) -> (Tensor, Tensor, Tensor)
_convolution_mode(Tensor input, Tensor weight, Tensor? bias, int[] stride, str padding, int[] dilation, int groups) -> Tensor
_dimI(Tensor self) -> int
_dimV(Tensor self) -> int
_dim_arange(Tensor like, int dim) -> Tensor
_dirichlet_grad(Tensor x, Tensor alpha, Tensor total) -> Tensor
_embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)
_embedding_bag_backward(Tensor grad, Tensor indices, Tensor offsets, Tensor offset2bag, Tensor bag_size, Tensor maximum_indices, int num_weights, bool scale_grad_by_freq, int mode, bool sparse, Tensor? per_sample_weights, int padding_idx=-1) -> Tensor
_embedding_bag_dense_backward(Tensor grad, Tensor indices, Tensor offset2bag, Tensor bag_size, Tensor maximum_indices, int num_weights, bool scale_grad_by_freq, int mode, Tensor? per_sample_weights, int padding_idx=-1) -> Tensor
_embedding_bag_forward_only(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)
_euclidean_dist(Tensor x1, Tensor x2) -> Tensor
_fft_c2c(Tensor self, int[] dim, int normalization, bool forward) -> Tensor
_fft_c2r(Tensor self, int[] dim, int normalization, int last_dim_size) -> Tensor
_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor
_fill_mem_eff_dropout_mask_(Tensor(a!) self, float dropout_p, int seed, int offset) -> Tensor(a!)
_foobar(Tensor self, bool arg1=True, bool arg2=True, *, bool arg3=True) -> Tensor
_grad_sum_to_size(Tensor self, int[]? size) -> Tensor
_grid_sampler_2d_cpu_fallback(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor
_grid_sampler_2d_cpu_fallback_backward(Tensor grad_output, Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> (Tensor, Tensor)
_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, ScalarType? out_dtype=None) -> Tensor
_histogramdd_bin_edges(Tensor self, int[] bins, *, float[]? range=None, Tensor? weight=None, bool density=False) -> Tensor[]
_histogramdd_from_bin_cts(Tensor self, int[] bins, *, float[]? range=None, Tensor? weight=None, bool density=False) -> Tensor
_histogramdd_from_bin_tensors(Tensor self, Tensor[] bins, *, Tensor? weight=None, bool density=False) -> Tensor
_index_put_impl(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False, bool unsafe=False) -> Tensor
_index_put_impl_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False, bool unsafe=False) -> Tensor(a!)
_indices(Tensor self) -> Tensor
_indices_copy(Tensor self) -> Tensor
_is_all_true(Tensor self) -> Tensor
_is_any_true(Tensor self) -> Tensor
_is_zerotensor(Tensor self) -> bool
_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)
_linalg_det.result(Tensor A, *, Tensor(a!) result, Tensor(b!) LU, Tensor(c!) pivots) -> (Tensor(a!) result, Tensor(b!) LU, Tensor(c!) pivots)
_linalg_eigh(Tensor A, str UPLO="L", bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors)
_linalg_eigh.eigenvalues(Tensor A, str UPLO="L", bool compute_v=True, *, Tensor(a!) eigenvalues, Tensor(b!) eigenvectors) -> (Tensor(a!) eigenvalues, Tensor(b!) eigenvectors)
_linalg_eigvals(Tensor self) -> Tensor
_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)
_linalg_slogdet.sign(Tensor A, *, Tensor(a!) sign, Tensor(b!) logabsdet, Tensor(c!) LU, Tensor(d!) pivots) -> (Tensor(a!) sign, Tensor(b!) logabsdet, Tensor(c!) LU, Tensor(d!) pivots)
_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor LU, Tensor pivots, Tensor info)
_linalg_solve_ex.result(Tensor A, Tensor B, *, bool left=True, bool check_errors=False, Tensor(a!) result, Tensor(b!) LU, Tensor(c!) pivots, Tensor(d!) info) -> (Tensor(a!) result, Tensor(b!) LU, Tensor(c!) pivots, Tensor(d!) info)
_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)
_linalg_svd.U(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None, Tensor(a!) U, Tensor(b!) S, Tensor(c!) Vh) -> (Tensor(a!) U, Tensor(b!) S, Tensor(c!) Vh)
_list_to_tensor(int[] self) -> Tensor
_local_scalar_dense(Tensor self) -> Scalar
_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor
_logcumsumexp(Tensor self, int dim) -> Tensor
_lu_with_info(Tensor self, bool pivot=True, bool check_errors=True) -> (Tensor LU, Tensor pivots, Tensor info)
_make_dep_token(*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor
_masked_scale(Tensor self, Tensor mask, float scale) -> Tensor
_masked_softmax(Tensor self, Tensor mask, int? dim=None, int? mask_type=None) -> Tensor
_masked_softmax_backward(Tensor grad_output, Tensor output, Tensor mask, int? dim=None) -> Tensor
_mixed_dtypes_linear(Tensor input, Tensor weight, Tensor scale, *, Tensor? bias=None, str? activation=None) -> Tensor
_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, Tensor(b!) running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)
_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)
_native_batch_norm_legit_functional(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor running_mean_out, Tensor running_var_out)
_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor)
_native_multi_head_attention(Tensor query, Tensor key, Tensor value, int embed_dim, int num_head, Tensor qkv_weight, Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, Tensor? mask=None, bool need_weights=True, bool average_attn_weights=True, int? mask_type=None) -> (Tensor, Tensor)
_ncf_unsqueeze(Tensor self, int ndim) -> Tensor
_ncf_view(Tensor self, int[] input_shape, int normalized_ndim) -> Tensor
_nnz(Tensor self) -> int
_no_grad_embedding_renorm_(Tensor weight, Tensor input, float max_norm, float norm_type) -> Tensor
_no_grad_fill_(Tensor(a!) tensor, float val) -> Tensor(a!)
_no_grad_normal_(Tensor(a!) tensor, float mean, float std, Generator? generator=None) -> Tensor(a!)
_no_grad_uniform_(Tensor(a!) tensor, float a, float b, Generator? generator=None) -> Tensor(a!)
_no_grad_zero_(Tensor(a!) tensor) -> Tensor(a!)
_pack_sequence(Tensor output, Tensor batch_sizes, Tensor? sorted_indices, Tensor? unsorted_indices) -> (Tensor, Tensor, Tensor?, Tensor?)
_pad_circular(Tensor self, int[] pad) -> Tensor
_pad_enum(Tensor self, int[] pad, int mode, float? value=None) -> Tensor
_pdist_backward(Tensor grad_output, Tensor self, float p, Tensor pdist) -> Tensor
_pdist_forward(Tensor self, float p=2.) -> Tensor
_philox_key_fold_in(Tensor key, int data) -> Tensor
_philox_key_fold_in.Tensor(Tensor key, Tensor data) -> Tensor
_philox_key_split(Tensor key, int num_splits) -> Tensor
_philox_normal(Tensor self, Tensor key, float mean=0., float std=1.) -> Tensor
_philox_normal_(Tensor(a!) self, Tensor key, float mean=0., float std=1.) -> Tensor(a!)
_philox_randint(Tensor self, Tensor key, int? low=None, int? high=None) -> Tensor
_philox_randint_(Tensor(a!) self, Tensor key, int? low=None, int? high=None) -> Tensor(a!)
_philox_uniform(Tensor self, Tensor key, float low=0., float high=1.) -> Tensor
_philox_uniform_(Tensor(a!) self, Tensor key, float low=0., float high=1.) -> Tensor(a!)
_prelu_kernel(Tensor self, Tensor weight) -> Tensor
_prelu_kernel_backward(Tensor grad_output, Tensor self, Tensor weight) -> (Tensor, Tensor)
_remove_batch_dim(Tensor self, int level, int batch_size, int out_dim) -> Tensor
_reshape_alias(Tensor self, int[] size, int[] stride) -> Tensor
_reshape_alias_copy(Tensor self, int[] size, int[] stride) -> Tensor
_reshape_copy(Tensor self, int[] size) -> Tensor
_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor
_sample_dirichlet(Tensor self, Generator? generator=None) -> Tensor
_scaled_addmm(Tensor self, Tensor mat1, Tensor mat2, Tensor[] scale_a, int[] recipe_a, int[] swizzle_a, Tensor[] scale_b, int[] recipe_b, int[] swizzle_b, int[] contraction_dim=[], *, Scalar beta=1, Scalar alpha=1, bool use_fast_accum=False) -> Tensor
_scaled_addmm_(Tensor(a!) self, Tensor mat1, Tensor mat2, Tensor[] scale_a, int[] recipe_a, int[] swizzle_a, Tensor[] scale_b, int[] recipe_b, int[] swizzle_b, int[] contraction_dim=[], *, Scalar beta=1, Scalar alpha=1, bool use_fast_accum=False) -> Tensor(a!)
_scaled_dot_product_attention_math(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0., bool is_causal=False, Tensor? dropout_mask=None, *, float? scale=None, bool enable_gqa=False) -> (Tensor, Tensor)
_scaled_dot_product_efficient_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_bias, bool compute_log_sumexp, float dropout_p=0., bool is_causal=False, *, float? scale=None) -> (Tensor output, Tensor log_sumexp, Tensor philox_seed, Tensor philox_offset)
_scaled_dot_product_efficient_attention_backward(Tensor grad_out_, Tensor query, Tensor key, Tensor value, Tensor attn_bias, Tensor out, Tensor logsumexp, Tensor philox_seed, Tensor philox_offset, float dropout_p, bool[4] grad_input_mask, bool is_causal=False, *, float? scale=None) -> (Tensor, Tensor, Tensor, Tensor)
_scaled_dot_product_flash_attention(Tensor query, Tensor key, Tensor value, float dropout_p=0., bool is_causal=False, bool return_debug_mask=False, *, float? scale=None) -> (Tensor output, Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, int max_q, int max_k, Tensor rng_state, Tensor unused, Tensor debug_attn_mask)
_scaled_dot_product_flash_attention.quantized(Tensor query, Tensor key, Tensor value, Tensor? q_descale, Tensor? k_descale, Tensor? v_descale, float dropout_p=0., bool is_causal=False, bool return_debug_mask=False, *, float? scale=None) -> (Tensor output, Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, int max_q, int max_k, Tensor rng_state, Tensor unused, Tensor debug_attn_mask)
_scaled_dot_product_flash_attention_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor out, Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, int max_q, int max_k, float dropout_p, bool is_causal, Tensor philox_seed, Tensor philox_offset, *, float? scale=None) -> (Tensor grad_query, Tensor grad_key, Tensor grad_value)
_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float dropout_p=0., bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor output, Tensor logsumexp)
_scaled_dot_product_flash_attention_for_cpu_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor out, Tensor logsumexp, float dropout_p, bool is_causal, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor grad_query, Tensor grad_key, Tensor grad_value)
_softmax(Tensor self, int dim, bool half_to_float) -> Tensor
_spsolve(Tensor A, Tensor B, *, bool left=True) -> Tensor
_stack(Tensor[] tensors, int dim=0) -> Tensor
_standard_gamma(Tensor self, Generator? generator=None) -> Tensor
_standard_gamma_grad(Tensor self, Tensor output) -> Tensor
_tensor_to_list(Tensor self) -> int[]
_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor
_to_cpu(Tensor[] tensors) -> Tensor[]
_to_dense(Tensor self, ScalarType? dtype=None, bool? masked_grad=None) -> Tensor
_transform_bias_rescale_qkv(Tensor qkv, Tensor qkv_bias, int num_heads) -> (Tensor, Tensor, Tensor)
_transformer_encoder_layer_fwd(Tensor src, int embed_dim, int num_heads, Tensor qkv_weight, Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, bool use_gelu, bool norm_first, float eps, Tensor norm_weight_1, Tensor norm_bias_1, Tensor norm_weight_2, Tensor norm_bias_2, Tensor ffn_weight_1, Tensor ffn_bias_1, Tensor ffn_weight_2, Tensor ffn_bias_2, Tensor? mask=None, int? mask_type=None) -> Tensor
_trilinear(Tensor i1, Tensor i2, Tensor i3, int[] expand1, int[] expand2, int[] expand3, int[] sumdim, int unroll_dim=1) -> Tensor
_triton_multi_head_attention(Tensor query, Tensor key, Tensor value, int embed_dim, int num_head, Tensor qkv_weight, Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, Tensor? mask=None) -> Tensor
_triton_scaled_dot_attention(Tensor q, Tensor k, Tensor v, float dropout_p=0.) -> Tensor
_unique(Tensor self, bool sorted=True, bool return_inverse=False) -> (Tensor, Tensor)
_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)
_unsafe_index.Tensor(Tensor self, Tensor?[] indices) -> Tensor
_unsafe_index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor
_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> Tensor
_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices, Tensor values) -> Tensor
_unsafe_view(Tensor self, int[] size) -> Tensor
_upsample_bicubic2d_aa(Tensor self, int[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor
_upsample_bicubic2d_aa.vec(Tensor input, int[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor
_upsample_bicubic2d_aa_backward(Tensor grad_output, int[2] output_size, int[4] input_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor
_upsample_bilinear2d_aa(Tensor self, int[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor
_upsample_bilinear2d_aa.vec(Tensor input, int[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor
_upsample_bilinear2d_aa_backward(Tensor grad_output, int[2] output_size, int[4] input_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor
_upsample_lanczos2d_aa(Tensor self, int[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor
_upsample_lanczos2d_aa.vec(Tensor input, int[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor
_upsample_lanczos2d_aa_backward(Tensor grad_output, int[2] output_size, int[4] input_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor
_upsample_nearest_exact1d(Tensor self, int[1] output_size, float? scales=None) -> Tensor
_upsample_nearest_exact1d.vec(Tensor input, int[]? output_size, float[]? scale_factors) -> Tensor
_upsample_nearest_exact1d_backward(Tensor grad_output, int[1] output_size, int[3] input_size, float? scales=None) -> Tensor
_upsample_nearest_exact2d(Tensor self, int[2] output_size, float? scales_h=None, float? scales_w=None) -> Tensor
_upsample_nearest_exact2d.vec(Tensor input, int[]? output_size, float[]? scale_factors) -> Tensor
_upsample_nearest_exact2d_backward(Tensor grad_output, int[2] output_size, int[4] input_size, float? scales_h=None, float? scales_w=None) -> Tensor
_upsample_nearest_exact3d(Tensor self, int[3] output_size, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor
_upsample_nearest_exact3d.vec(Tensor input, int[]? output_size, float[]? scale_factors) -> Tensor
_upsample_nearest_exact3d_backward(Tensor grad_output, int[3] output_size, int[5] input_size, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor
_values(Tensor self) -> Tensor
_values_copy(Tensor self) -> Tensor
_wrapped_linear_prepack(Tensor weight, Tensor weight_scale, Tensor weight_zero_point, Tensor bias) -> Tensor
abs(Tensor self) -> Tensor
abs_(Tensor(a!) self) -> Tensor(a!)
absolute(Tensor self) -> Tensor
absolute_(Tensor(a!) self) -> Tensor(a!)
acos(Tensor self) -> Tensor
acos_(Tensor(a!) self) -> Tensor(a!)
acosh(Tensor self) -> Tensor
acosh_(Tensor(a!) self) -> Tensor(a!)
adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor
adaptive_avg_pool2d(Tensor self, int[2] output_size) -> Tensor
adaptive_avg_pool3d(Tensor self, int[3] output_size) -> Tensor
adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)
adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor, Tensor)
adaptive_max_pool2d_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor
adaptive_max_pool3d(Tensor self, int[3] output_size) -> (Tensor, Tensor)
adaptive_max_pool3d_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor
add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor
add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
add_.Scalar(Tensor(a!) self, Scalar other, Scalar alpha=1) -> Tensor(a!)
add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)
addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor
addbmm_(Tensor(a!) self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor(a!)
addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor
addcdiv_(Tensor(a!) self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor(a!)
addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor
addcmul_(Tensor(a!) self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor(a!)
addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor
addmm.dtype(Tensor self, Tensor mat1, Tensor mat2, ScalarType out_dtype, *, Scalar beta=1, Scalar alpha=1) -> Tensor
addmm_(Tensor(a!) self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor(a!)
addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor
addmv_(Tensor(a!) self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor(a!)
addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor
addr_(Tensor(a!) self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor(a!)
adjoint(Tensor self) -> Tensor
affine_grid_generator(Tensor theta, int[] size, bool align_corners) -> Tensor
affine_grid_generator_backward(Tensor grad, int[] size, bool align_corners) -> Tensor
alias(Tensor self) -> Tensor
alias_copy(Tensor self) -> Tensor
all(Tensor self) -> Tensor
all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor
all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor
allclose(Tensor self, Tensor other, float rtol=1.0000000000000001e-05, float atol=1e-08, bool equal_nan=False) -> bool
alpha_dropout(Tensor input, float p, bool train) -> Tensor
alpha_dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)
amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor
amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor
aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)
angle(Tensor self) -> Tensor
any(Tensor self) -> Tensor
any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor
any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor
arange(Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
arange.start(Scalar start, Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
arange.start_step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
arccos(Tensor self) -> Tensor
arccos_(Tensor(a!) self) -> Tensor(a!)
arccosh(Tensor self) -> Tensor
arccosh_(Tensor(a!) self) -> Tensor(a!)
arcsin(Tensor self) -> Tensor
arcsin_(Tensor(a!) self) -> Tensor(a!)
arcsinh(Tensor self) -> Tensor
arcsinh_(Tensor(a!) self) -> Tensor(a!)
arctan(Tensor self) -> Tensor
arctan2(Tensor self, Tensor other) -> Tensor
arctan2_(Tensor(a!) self, Tensor other) -> Tensor(a!)
arctan_(Tensor(a!) self) -> Tensor(a!)
arctanh(Tensor self) -> Tensor
arctanh_(Tensor(a!) self) -> Tensor(a!)
argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor
argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor
argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor
argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor
argwhere(Tensor self) -> Tensor
as_strided(Tensor self, int[] size, int[] stride, int? storage_offset=None) -> Tensor
as_strided_(Tensor(a!) self, int[] size, int[] stride, int? storage_offset=None) -> Tensor(a!)
as_strided_copy(Tensor self, int[] size, int[] stride, int? storage_offset=None) -> Tensor
as_strided_scatter(Tensor self, Tensor src, int[] size, int[] stride, int? storage_offset=None) -> Tensor
as_tensor(Tensor data, *, ScalarType? dtype=None, Device? device=None) -> Tensor
as_tensor.bool(bool t, *, ScalarType? dtype=None, Device? device=None) -> Tensor
as_tensor.complex(complex t, *, ScalarType? dtype=None, Device? device=None) -> Tensor
as_tensor.float(float t, *, ScalarType? dtype=None, Device? device=None) -> Tensor
as_tensor.int(int t, *, ScalarType? dtype=None, Device? device=None) -> Tensor
asin(Tensor self) -> Tensor
asin_(Tensor(a!) self) -> Tensor(a!)
asinh(Tensor self) -> Tensor
asinh_(Tensor(a!) self) -> Tensor(a!)
atan(Tensor self) -> Tensor
atan2(Tensor self, Tensor other) -> Tensor
atan2_(Tensor(a!) self, Tensor other) -> Tensor(a!)
atan_(Tensor(a!) self) -> Tensor(a!)
atanh(Tensor self) -> Tensor
atanh_(Tensor(a!) self) -> Tensor(a!)
atleast_1d(Tensor self) -> Tensor
atleast_1d.Sequence(Tensor[] tensors) -> Tensor[]
atleast_2d(Tensor self) -> Tensor
atleast_2d.Sequence(Tensor[] tensors) -> Tensor[]
atleast_3d(Tensor self) -> Tensor
atleast_3d.Sequence(Tensor[] tensors) -> Tensor[]
avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], bool ceil_mode=False, bool count_include_pad=True) -> Tensor
avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor
avg_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor
avg_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor
avg_pool3d_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] stride, int[3] padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor
backward(Tensor self, Tensor? gradient=None, bool? retain_graph=None, bool create_graph=False) -> ()
backward.TensorList(Tensor[] tensors, Tensor?[]? grad_tensors=None, bool? retain_graph=None, bool create_graph=False) -> ()
baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor
baddbmm.dtype(Tensor self, Tensor batch1, Tensor batch2, ScalarType out_dtype, *, Scalar beta=1, Scalar alpha=1) -> Tensor
baddbmm_(Tensor(a!) self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor(a!)
bartlett_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
bartlett_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps, bool cudnn_enabled) -> Tensor
batch_norm_backward(Tensor grad_out, Tensor input, Tensor weight, Tensor? running_mean, Tensor? running_var, Tensor? save_mean, Tensor? save_var, bool update, float eps, bool[3] output_mask, Tensor reserve) -> (Tensor, Tensor, Tensor)
batch_norm_backward_elemt(Tensor grad_out, Tensor input, Tensor mean, Tensor invstd, Tensor? weight, Tensor sum_dy, Tensor sum_dy_xmu, Tensor count) -> Tensor
batch_norm_backward_reduce(Tensor grad_out, Tensor input, Tensor mean, Tensor invstd, Tensor? weight, bool input_g, bool weight_g, bool bias_g) -> (Tensor, Tensor, Tensor, Tensor)
batch_norm_elemt(Tensor input, Tensor? weight, Tensor? bias, Tensor mean, Tensor invstd, float eps) -> Tensor
batch_norm_gather_stats(Tensor input, Tensor mean, Tensor invstd, Tensor? running_mean, Tensor? running_var, float momentum, float eps, int count) -> (Tensor, Tensor)
batch_norm_gather_stats_with_counts(Tensor input, Tensor mean, Tensor invstd, Tensor? running_mean, Tensor? running_var, float momentum, float eps, Tensor counts) -> (Tensor, Tensor)
batch_norm_stats(Tensor input, float eps) -> (Tensor, Tensor)
batch_norm_update_stats(Tensor input, Tensor? running_mean, Tensor? running_var, float momentum) -> (Tensor, Tensor)
bernoulli(Tensor self, *, Generator? generator=None) -> Tensor
bernoulli.Tensor(Tensor self, Tensor p, *, Generator? generator=None) -> Tensor
bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor
bernoulli_.Tensor(Tensor(a!) self, Tensor p, *, Generator? generator=None) -> Tensor(a!)
bernoulli_.float(Tensor(a!) self, float p=0.5, *, Generator? generator=None) -> Tensor(a!)
bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor
binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor
binary_cross_entropy_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor
binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, int reduction=1) -> Tensor
bincount(Tensor self, Tensor? weights=None, int minlength=0) -> Tensor
binomial(Tensor count, Tensor prob, Generator? generator=None) -> Tensor
bitwise_and.Scalar(Tensor self, Scalar other) -> Tensor
bitwise_and.Scalar_Tensor(Scalar self, Tensor other) -> Tensor
bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor
bitwise_and_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)
bitwise_and_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)
bitwise_left_shift.Scalar_Tensor(Scalar self, Tensor other) -> Tensor
bitwise_left_shift.Tensor(Tensor self, Tensor other) -> Tensor
bitwise_left_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor
bitwise_left_shift_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)
bitwise_left_shift_.Tensor_Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)
bitwise_not(Tensor self) -> Tensor
bitwise_not_(Tensor(a!) self) -> Tensor(a!)
bitwise_or.Scalar(Tensor self, Scalar other) -> Tensor
bitwise_or.Scalar_Tensor(Scalar self, Tensor other) -> Tensor
bitwise_or.Tensor(Tensor self, Tensor other) -> Tensor
bitwise_or_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)
bitwise_or_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)
bitwise_right_shift.Scalar_Tensor(Scalar self, Tensor other) -> Tensor
bitwise_right_shift.Tensor(Tensor self, Tensor other) -> Tensor
bitwise_right_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor
bitwise_right_shift_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)
bitwise_right_shift_.Tensor_Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)
bitwise_xor.Scalar(Tensor self, Scalar other) -> Tensor
bitwise_xor.Scalar_Tensor(Scalar self, Tensor other) -> Tensor
bitwise_xor.Tensor(Tensor self, Tensor other) -> Tensor
bitwise_xor_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)
bitwise_xor_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)
blackman_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
blackman_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
block_diag(Tensor[] tensors) -> Tensor
bmm(Tensor self, Tensor mat2) -> Tensor
bmm.dtype(Tensor self, Tensor mat2, ScalarType out_dtype) -> Tensor
broadcast_tensors(Tensor[] tensors) -> Tensor[]
broadcast_to(Tensor self, int[] size) -> Tensor
bucketize.Scalar(Scalar self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor
bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor
cartesian_prod(Tensor[] tensors) -> Tensor
cat(Tensor[] tensors, int dim=0) -> Tensor
cauchy(Tensor self, float median=0., float sigma=1., *, Generator? generator=None) -> Tensor
cauchy_(Tensor(a!) self, float median=0., float sigma=1., *, Generator? generator=None) -> Tensor(a!)
cdist(Tensor x1, Tensor x2, float p=2., int? compute_mode=None) -> Tensor
ceil(Tensor self) -> Tensor
ceil_(Tensor(a!) self) -> Tensor(a!)
celu(Tensor self, Scalar alpha=1.) -> Tensor
celu_(Tensor(a!) self, Scalar alpha=1.) -> Tensor(a!)
chain_matmul(Tensor[] matrices) -> Tensor
chalf(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor
channel_shuffle(Tensor self, int groups) -> Tensor
cholesky_inverse(Tensor self, bool upper=False) -> Tensor
cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor
choose_qparams_optimized(Tensor input, int numel, int n_bins, float ratio, int bit_width) -> (Tensor, Tensor)
chunk(Tensor self, int chunks, int dim=0) -> Tensor[]
clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor
clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor
clamp_(Tensor(a!) self, Scalar? min=None, Scalar? max=None) -> Tensor(a!)
clamp_.Tensor(Tensor(a!) self, Tensor? min=None, Tensor? max=None) -> Tensor(a!)
clamp_max(Tensor self, Scalar max) -> Tensor
clamp_max.Tensor(Tensor self, Tensor max) -> Tensor
clamp_max_(Tensor(a!) self, Scalar max) -> Tensor(a!)
clamp_max_.Tensor(Tensor(a!) self, Tensor max) -> Tensor(a!)
clamp_min(Tensor self, Scalar min) -> Tensor
clamp_min.Tensor(Tensor self, Tensor min) -> Tensor
clamp_min_(Tensor(a!) self, Scalar min) -> Tensor(a!)
clamp_min_.Tensor(Tensor(a!) self, Tensor min) -> Tensor(a!)
clip(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor
clip.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor
clip_(Tensor(a!) self, Scalar? min=None, Scalar? max=None) -> Tensor(a!)
clip_.Tensor(Tensor(a!) self, Tensor? min=None, Tensor? max=None) -> Tensor(a!)
clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor
col2im(Tensor self, int[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor
column_stack(Tensor[] tensors) -> Tensor
combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor
complex(Tensor real, Tensor imag) -> Tensor
concat(Tensor[] tensors, int dim=0) -> Tensor
concatenate(Tensor[] tensors, int dim=0) -> Tensor
conj(Tensor self) -> Tensor
conj_physical(Tensor self) -> Tensor
conj_physical_(Tensor(a!) self) -> Tensor(a!)
constant_pad_nd(Tensor self, int[] pad, Scalar value=0) -> Tensor
contiguous(Tensor self, *, MemoryFormat memory_format=0) -> Tensor
conv1d(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=[1], int[1] padding=[0], int[1] dilation=[1], int groups=1) -> Tensor
conv1d.padding(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=[1], str padding="valid", int[1] dilation=[1], int groups=1) -> Tensor
conv2d(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=[1, 1], int[2] padding=[0, 0], int[2] dilation=[1, 1], int groups=1) -> Tensor
conv2d.padding(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=[1, 1], str padding="valid", int[2] dilation=[1, 1], int groups=1) -> Tensor
conv3d(Tensor input, Tensor weight, Tensor? bias=None, int[3] stride=[1, 1, 1], int[3] padding=[0, 0, 0], int[3] dilation=[1, 1, 1], int groups=1) -> Tensor
conv3d.padding(Tensor input, Tensor weight, Tensor? bias=None, int[3] stride=[1, 1, 1], str padding="valid", int[3] dilation=[1, 1, 1], int groups=1) -> Tensor
conv_depthwise3d(Tensor self, Tensor weight, int[3] kernel_size, Tensor? bias, int[3] stride, int[3] padding, int[3] dilation) -> Tensor
conv_tbc(Tensor self, Tensor weight, Tensor bias, int pad=0) -> Tensor
conv_tbc_backward(Tensor self, Tensor input, Tensor weight, Tensor bias, int pad) -> (Tensor, Tensor, Tensor)
conv_transpose1d(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=[1], int[1] padding=[0], int[1] output_padding=[0], int groups=1, int[1] dilation=[1]) -> Tensor
conv_transpose2d.input(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=[1, 1], int[2] padding=[0, 0], int[2] output_padding=[0, 0], int groups=1, int[2] dilation=[1, 1]) -> Tensor
conv_transpose3d.input(Tensor input, Tensor weight, Tensor? bias=None, int[3] stride=[1, 1, 1], int[3] padding=[0, 0, 0], int[3] output_padding=[0, 0, 0], int groups=1, int[3] dilation=[1, 1, 1]) -> Tensor
convolution(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, bool transposed, int[] output_padding, int groups) -> Tensor
convolution_backward(Tensor grad_output, Tensor input, Tensor weight, int[]? bias_sizes, int[] stride, int[] padding, int[] dilation, bool transposed, int[] output_padding, int groups, bool[3] output_mask) -> (Tensor, Tensor, Tensor)
convolution_backward_overrideable(Tensor grad_output, Tensor input, Tensor weight, int[] stride, int[] padding, int[] dilation, bool transposed, int[] output_padding, int groups, bool[3] output_mask) -> (Tensor grad_input, Tensor grad_weight, Tensor grad_bias)
convolution_overrideable(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, bool transposed, int[] output_padding, int groups) -> Tensor
copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor
copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)
copy_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)
copy_.float(Tensor(a!) self, float other) -> Tensor(a!)
copy_.int(Tensor(a!) self, int other) -> Tensor(a!)
copysign.Scalar(Tensor self, Scalar other) -> Tensor
copysign.Tensor(Tensor self, Tensor other) -> Tensor
copysign_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)
copysign_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)
corrcoef(Tensor self) -> Tensor
cos(Tensor self) -> Tensor
cos_(Tensor(a!) self) -> Tensor(a!)
cosh(Tensor self) -> Tensor
cosh_(Tensor(a!) self) -> Tensor(a!)
cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int reduction=1) -> Tensor
cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor
count.Tensor(Tensor[] self, Tensor el) -> int
count_nonzero(Tensor self, int? dim=None) -> Tensor
count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor
cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> Tensor
cpu(Tensor self) -> Tensor
cross(Tensor self, Tensor other, int? dim=None) -> Tensor
cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int ignore_index=-100, float label_smoothing=0.) -> Tensor
ctc_loss.IntList(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0, int reduction=1, bool zero_infinity=False) -> Tensor
ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank=0, int reduction=1, bool zero_infinity=False) -> Tensor
cuda(Tensor self) -> Tensor
cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)
cummaxmin_backward(Tensor grad, Tensor input, Tensor indices, int dim) -> Tensor
cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)
cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor
cumprod_(Tensor(a!) self, int dim, *, ScalarType? dtype=None) -> Tensor(a!)
cumprod_backward(Tensor grad, Tensor input, int dim, Tensor output) -> Tensor
cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor
cumsum_(Tensor(a!) self, int dim, *, ScalarType? dtype=None) -> Tensor(a!)
cumulative_trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor
cumulative_trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor
data(Tensor self) -> Tensor
deg2rad(Tensor self) -> Tensor
deg2rad_(Tensor(a!) self) -> Tensor(a!)
dense_dim(Tensor self) -> int
det(Tensor self) -> Tensor
detach(Tensor self) -> Tensor
detach_(Tensor(a!) self) -> Tensor(a!)
detach_copy(Tensor self) -> Tensor
diag(Tensor self, int diagonal=0) -> Tensor
diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor
diagflat(Tensor self, int offset=0) -> Tensor
diagonal(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor
diagonal_backward(Tensor grad_output, int[] input_sizes, int offset, int dim1, int dim2) -> Tensor
diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor
diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor
diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor
digamma(Tensor self) -> Tensor
digamma_(Tensor(a!) self) -> Tensor(a!)
dim(Tensor self) -> int
dist(Tensor self, Tensor other, Scalar p=2) -> Tensor
dist_backward(int context_id, Tensor[] roots, bool retain_graph=False) -> ()
div.Scalar(Tensor self, Scalar other) -> Tensor
div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor
div.Tensor(Tensor self, Tensor other) -> Tensor
div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor
div.out_mode(Tensor self, Tensor other, *, str? rounding_mode, Tensor(a!) out) -> Tensor(a!)
div_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)
div_.Scalar_mode(Tensor(a!) self, Scalar other, *, str? rounding_mode) -> Tensor(a!)
div_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)
div_.Tensor_mode(Tensor(a!) self, Tensor other, *, str? rounding_mode) -> Tensor(a!)
divide.Scalar(Tensor self, Scalar other) -> Tensor
divide.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor
divide.Tensor(Tensor self, Tensor other) -> Tensor
divide.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor
divide.out_mode(Tensor self, Tensor other, *, str? rounding_mode, Tensor(a!) out) -> Tensor(a!)
divide_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)
divide_.Scalar_mode(Tensor(a!) self, Scalar other, *, str? rounding_mode) -> Tensor(a!)
divide_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)
divide_.Tensor_mode(Tensor(a!) self, Tensor other, *, str? rounding_mode) -> Tensor(a!)
dot(Tensor self, Tensor tensor) -> Tensor
dropout(Tensor input, float p, bool train) -> Tensor
dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)
dsplit.array(Tensor self, int[] indices) -> Tensor[]
dsplit.int(Tensor self, int sections) -> Tensor[]
dstack(Tensor[] tensors) -> Tensor
einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor
element_size(Tensor self) -> int
elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor
elu_(Tensor(a!) self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor(a!)
elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, bool is_result, Tensor self_or_result) -> Tensor
embedding(Tensor weight, Tensor indices, int padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor
embedding_backward(Tensor grad, Tensor indices, int num_weights, int padding_idx, bool scale_grad_by_freq, bool sparse) -> Tensor
embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False) -> (Tensor, Tensor, Tensor, Tensor)
embedding_bag.padding_idx(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq, int mode, bool sparse, Tensor? per_sample_weights, bool include_last_offset, int? padding_idx) -> (Tensor, Tensor, Tensor, Tensor)
embedding_dense_backward(Tensor grad_output, Tensor indices, int num_weights, int padding_idx, bool scale_grad_by_freq) -> Tensor
embedding_renorm(Tensor self, Tensor indices, float max_norm, float norm_type) -> Tensor
embedding_renorm_(Tensor(a!) self, Tensor indices, float max_norm, float norm_type) -> Tensor(a!)
empty.memory_format(int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor
empty_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor
empty_permuted(int[] size, int[] physical_layout, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
empty_strided(int[] size, int[] stride, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
eq.Scalar(Tensor self, Scalar other) -> Tensor
eq.Tensor(Tensor self, Tensor other) -> Tensor
eq.Tensor_list(Tensor[] a, Tensor[] b) -> bool
equal(Tensor self, Tensor other) -> bool
erf(Tensor self) -> Tensor
erf_(Tensor(a!) self) -> Tensor(a!)
erfc(Tensor self) -> Tensor
erfc_(Tensor(a!) self) -> Tensor(a!)
erfinv(Tensor self) -> Tensor
erfinv_(Tensor(a!) self) -> Tensor(a!)
exp(Tensor self) -> Tensor
exp2(Tensor self) -> Tensor
exp2_(Tensor(a!) self) -> Tensor(a!)
exp_(Tensor(a!) self) -> Tensor(a!)
expand(Tensor self, int[] size, *, bool implicit=False) -> Tensor
expand_as(Tensor self, Tensor other) -> Tensor
expand_copy(Tensor self, int[] size, *, bool implicit=False) -> Tensor
expm1(Tensor self) -> Tensor
expm1_(Tensor(a!) self) -> Tensor(a!)
exponential(Tensor self, float lambd=1., *, Generator? generator=None) -> Tensor
exponential_(Tensor(a!) self, float lambd=1., *, Generator? generator=None) -> Tensor(a!)
eye(int n, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
eye.m(int n, int m, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
feature_alpha_dropout(Tensor input, float p, bool train) -> Tensor
feature_alpha_dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)
feature_dropout(Tensor input, float p, bool train) -> Tensor
feature_dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)
fft_fft(Tensor self, int? n=None, int dim=-1, str? norm=None) -> Tensor
fft_fft2(Tensor self, int[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor
fft_fftfreq(int n, float d=1., *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
fft_fftn(Tensor self, int[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor
fft_fftshift(Tensor self, int[1]? dim=None) -> Tensor
fft_hfft(Tensor self, int? n=None, int dim=-1, str? norm=None) -> Tensor
fft_hfft2(Tensor self, int[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor
fft_hfftn(Tensor self, int[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor
fft_ifft(Tensor self, int? n=None, int dim=-1, str? norm=None) -> Tensor
fft_ifft2(Tensor self, int[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor
fft_ifftn(Tensor self, int[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor
fft_ifftshift(Tensor self, int[1]? dim=None) -> Tensor
fft_ihfft(Tensor self, int? n=None, int dim=-1, str? norm=None) -> Tensor
fft_ihfft2(Tensor self, int[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor
fft_ihfftn(Tensor self, int[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor
fft_irfft(Tensor self, int? n=None, int dim=-1, str? norm=None) -> Tensor
fft_irfft2(Tensor self, int[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor
fft_irfftn(Tensor self, int[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor
fft_rfft(Tensor self, int? n=None, int dim=-1, str? norm=None) -> Tensor
fft_rfft2(Tensor self, int[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor
fft_rfftfreq(int n, float d=1., *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
fft_rfftn(Tensor self, int[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor
fill.Scalar(Tensor self, Scalar value) -> Tensor
fill.Tensor(Tensor self, Tensor value) -> Tensor
fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!)
fill_.Tensor(Tensor(a!) self, Tensor value) -> Tensor(a!)
fill_diagonal_(Tensor(a!) self, Scalar fill_value, bool wrap=False) -> Tensor(a!)
fix(Tensor self) -> Tensor
fix_(Tensor(a!) self) -> Tensor(a!)
flatten.using_ints(Tensor self, int start_dim=0, int end_dim=-1) -> Tensor
flatten_dense_tensors(Tensor[] tensors) -> Tensor
flip(Tensor self, int[] dims) -> Tensor
fliplr(Tensor self) -> Tensor
flipud(Tensor self) -> Tensor
float_power.Scalar(Scalar self, Tensor exponent) -> Tensor
float_power.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor
float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor
float_power_.Scalar(Tensor(a!) self, Scalar exponent) -> Tensor(a!)
float_power_.Tensor(Tensor(a!) self, Tensor exponent) -> Tensor(a!)
floor(Tensor self) -> Tensor
floor_(Tensor(a!) self) -> Tensor(a!)
floor_divide(Tensor self, Tensor other) -> Tensor
floor_divide.Scalar(Tensor self, Scalar other) -> Tensor
floor_divide_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)
floor_divide_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)
fmax(Tensor self, Tensor other) -> Tensor
fmin(Tensor self, Tensor other) -> Tensor
fmod.Scalar(Tensor self, Scalar other) -> Tensor
fmod.Tensor(Tensor self, Tensor other) -> Tensor
fmod_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)
fmod_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)
frac(Tensor self) -> Tensor
frac_(Tensor(a!) self) -> Tensor(a!)
fractional_max_pool2d(Tensor self, int[2] kernel_size, int[2] output_size, Tensor random_samples) -> (Tensor, Tensor)
fractional_max_pool2d.output(Tensor self, int[2] kernel_size, int[2] output_size, Tensor random_samples, *, Tensor(a!) output, Tensor(b!) indices) -> (Tensor(a!), Tensor(b!))
fractional_max_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] output_size, Tensor indices) -> Tensor
fractional_max_pool3d(Tensor self, int[3] kernel_size, int[3] output_size, Tensor random_samples) -> (Tensor, Tensor)
fractional_max_pool3d.output(Tensor self, int[3] kernel_size, int[3] output_size, Tensor random_samples, *, Tensor(a!) output, Tensor(b!) indices) -> (Tensor(a!), Tensor(b!))
fractional_max_pool3d_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] output_size, Tensor indices) -> Tensor
frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)
frobenius_norm.dim(Tensor self, int[1] dim, bool keepdim=False) -> Tensor
from_file(str filename, bool? shared=None, int? size=0, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
full(int[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor
gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor
gather_backward(Tensor grad, Tensor self, int dim, Tensor index, bool sparse_grad) -> Tensor
gcd(Tensor self, Tensor other) -> Tensor
gcd_(Tensor(a!) self, Tensor other) -> Tensor(a!)
ge.Scalar(Tensor self, Scalar other) -> Tensor
ge.Tensor(Tensor self, Tensor other) -> Tensor
ge_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)
ge_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)
gelu(Tensor self, *, str approximate="none") -> Tensor
gelu_(Tensor(a!) self, *, str approximate="none") -> Tensor(a!)
gelu_backward(Tensor grad_output, Tensor self, *, str approximate="none") -> Tensor
geometric(Tensor self, float p, *, Generator? generator=None) -> Tensor
geometric_(Tensor(a!) self, float p, *, Generator? generator=None) -> Tensor(a!)
geqrf(Tensor self) -> (Tensor a, Tensor tau)
geqrf.a(Tensor self, *, Tensor(a!) a, Tensor(b!) tau) -> (Tensor(a!) a, Tensor(b!) tau)
ger(Tensor self, Tensor vec2) -> Tensor
get_device(Tensor self) -> int
glu(Tensor self, int dim=-1) -> Tensor
glu_backward(Tensor grad_output, Tensor self, int dim) -> Tensor
glu_backward_jvp(Tensor grad_x, Tensor grad_glu, Tensor x, Tensor dgrad_glu, Tensor dx, int dim) -> Tensor
glu_jvp(Tensor glu, Tensor x, Tensor dx, int dim) -> Tensor
grad(Tensor[] outputs, Tensor[] inputs, Tensor?[]? grad_outputs=None, bool? retain_graph=None, bool create_graph=False, bool allow_unused=False) -> Tensor?[]
gradient.array(Tensor self, *, int[] dim, int edge_order=1) -> Tensor[]
gradient.scalararray(Tensor self, *, Scalar spacing, int[] dim, int edge_order=1) -> Tensor[]
gradient.scalarint(Tensor self, *, Scalar? spacing=None, int? dim=None, int edge_order=1) -> Tensor[]
gradient.scalarrayarray(Tensor self, *, Scalar[] spacing, int[] dim, int edge_order=1) -> Tensor[]
gradient.scalarrayint(Tensor self, *, Scalar[] spacing, int? dim=None, int edge_order=1) -> Tensor[]
gradient.tensorarray(Tensor self, *, Tensor[] spacing, int[] dim, int edge_order=1) -> Tensor[]
gradient.tensorarrayint(Tensor self, *, Tensor[] spacing, int? dim=None, int edge_order=1) -> Tensor[]
greater.Scalar(Tensor self, Scalar other) -> Tensor
greater.Tensor(Tensor self, Tensor other) -> Tensor
greater_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)
greater_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)
greater_equal.Scalar(Tensor self, Scalar other) -> Tensor
greater_equal.Tensor(Tensor self, Tensor other) -> Tensor
greater_equal_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)
greater_equal_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)
grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor
grid_sampler_2d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor
grid_sampler_2d_backward(Tensor grad_output, Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners, bool[2] output_mask) -> (Tensor, Tensor)
grid_sampler_3d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor
grid_sampler_3d_backward(Tensor grad_output, Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners, bool[2] output_mask) -> (Tensor, Tensor)
group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1.0000000000000001e-05, bool cudnn_enabled=True) -> Tensor
gru.data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor)
gru.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)
gru_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor
gt.Scalar(Tensor self, Scalar other) -> Tensor
gt.Tensor(Tensor self, Tensor other) -> Tensor
gt_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)
gt_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)
hamming_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
hamming_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
hamming_window.periodic_alpha(int window_length, bool periodic, float alpha, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
hamming_window.periodic_alpha_beta(int window_length, bool periodic, float alpha, float beta, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
hann_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
hann_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor
hardshrink_backward(Tensor grad_out, Tensor self, Scalar lambd) -> Tensor
hardsigmoid(Tensor self) -> Tensor
hardsigmoid_(Tensor(a!) self) -> Tensor(a!)
hardsigmoid_backward(Tensor grad_output, Tensor self) -> Tensor
hardswish(Tensor self) -> Tensor
hardswish_(Tensor(a!) self) -> Tensor(a!)
hardswish_backward(Tensor grad_output, Tensor self) -> Tensor
hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor
hardtanh_(Tensor(a!) self, Scalar min_val=-1, Scalar max_val=1) -> Tensor(a!)
hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val) -> Tensor
hash_tensor(Tensor self, int[1] dim=[], *, bool keepdim=False, int mode=0) -> Tensor
heaviside(Tensor self, Tensor values) -> Tensor
heaviside_(Tensor(a!) self, Tensor values) -> Tensor(a!)
hinge_embedding_loss(Tensor self, Tensor target, float margin=1., int reduction=1) -> Tensor
histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor
histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor bin_edges)
histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor bin_edges)
histogramdd(Tensor self, int[] bins, float[]? range=None, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor[] bin_edges)
histogramdd.TensorList_bins(Tensor self, Tensor[] bins, float[]? range=None, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor[] bin_edges)
histogramdd.int_bins(Tensor self, int bins, float[]? range=None, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor[] bin_edges)
hsplit.array(Tensor self, int[] indices) -> Tensor[]
hsplit.int(Tensor self, int sections) -> Tensor[]
hspmm(Tensor mat1, Tensor mat2) -> Tensor
hstack(Tensor[] tensors) -> Tensor
huber_loss(Tensor self, Tensor target, int reduction=1, float delta=1.) -> Tensor
huber_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float delta) -> Tensor
hypot(Tensor self, Tensor other) -> Tensor
hypot_(Tensor(a!) self, Tensor other) -> Tensor(a!)
i0(Tensor self) -> Tensor
i0_(Tensor(a!) self) -> Tensor(a!)
igamma(Tensor self, Tensor other) -> Tensor
igamma_(Tensor(a!) self, Tensor other) -> Tensor(a!)
igammac(Tensor self, Tensor other) -> Tensor
igammac_(Tensor(a!) self, Tensor other) -> Tensor(a!)
im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor
imag(Tensor self) -> Tensor
index.Tensor(Tensor self, Tensor?[] indices) -> Tensor
index.list_Tensor(Tensor[] self, Tensor el) -> int
index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor
index_add_(Tensor(a!) self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor(a!)
index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor
index_copy_(Tensor(a!) self, int dim, Tensor index, Tensor source) -> Tensor(a!)
index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor
index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor
index_fill_.int_Scalar(Tensor(a!) self, int dim, Tensor index, Scalar value) -> Tensor(a!)
index_fill_.int_Tensor(Tensor(a!) self, int dim, Tensor index, Tensor value) -> Tensor(a!)
index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor
index_put_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor(a!)
index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> Tensor
index_reduce_(Tensor(a!) self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> Tensor(a!)
index_select(Tensor self, int dim, Tensor index) -> Tensor
index_select_backward(Tensor grad, int[] self_sizes, int dim, Tensor index) -> Tensor
indices(Tensor self) -> Tensor
indices_copy(Tensor self) -> Tensor
infinitely_differentiable_gelu_backward(Tensor grad, Tensor self) -> Tensor
inner(Tensor self, Tensor other) -> Tensor
instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor
inverse(Tensor self) -> Tensor
is_complex(Tensor self) -> bool
is_conj(Tensor self) -> bool
is_contiguous(Tensor self) -> bool
is_contiguous.memory_format(Tensor self, MemoryFormat memory_format) -> bool
is_distributed(Tensor self) -> bool
is_floating_point(Tensor self) -> bool
is_inference(Tensor self) -> bool
is_leaf(Tensor self) -> bool
is_neg(Tensor self) -> bool
is_non_overlapping_and_dense(Tensor self) -> bool
is_nonzero(Tensor self) -> bool
is_pinned(Tensor self, Device? device=None) -> bool
is_same_size(Tensor self, Tensor other) -> bool
is_set_to(Tensor self, Tensor tensor) -> bool
is_signed(Tensor self) -> bool
is_strides_like_format(Tensor self, MemoryFormat memory_format) -> bool
isclose(Tensor self, Tensor other, float rtol=1.0000000000000001e-05, float atol=1e-08, bool equal_nan=False) -> Tensor
isfinite(Tensor self) -> Tensor
isin.Scalar_Tensor(Scalar element, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor
isin.Tensor_Scalar(Tensor elements, Scalar test_element, *, bool assume_unique=False, bool invert=False) -> Tensor
isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor
isinf(Tensor self) -> Tensor
isnan(Tensor self) -> Tensor
isneginf(Tensor self) -> Tensor
isposinf(Tensor self) -> Tensor
isreal(Tensor self) -> Tensor
istft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool center=True, bool normalized=False, bool? onesided=None, int? length=None, bool return_complex=False) -> Tensor
item(Tensor self) -> Scalar
kaiser_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
kaiser_window.beta(int window_length, bool periodic, float beta, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
kaiser_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
kl_div(Tensor self, Tensor target, int reduction=1, *, bool log_target=False) -> Tensor
kron(Tensor self, Tensor other) -> Tensor
kthvalue(Tensor self, int k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)
kthvalue.values(Tensor self, int k, int dim=-1, bool keepdim=False, *, Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)
l1_loss(Tensor self, Tensor target, int reduction=1) -> Tensor
layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1.0000000000000001e-05, bool cudnn_enable=True) -> Tensor
lcm(Tensor self, Tensor other) -> Tensor
lcm_(Tensor(a!) self, Tensor other) -> Tensor(a!)
ldexp.Tensor(Tensor self, Tensor other) -> Tensor
ldexp_(Tensor(a!) self, Tensor other) -> Tensor(a!)
le.Scalar(Tensor self, Scalar other) -> Tensor
le.Tensor(Tensor self, Tensor other) -> Tensor
le_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)
le_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)
leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor
leaky_relu_(Tensor(a!) self, Scalar negative_slope=0.01) -> Tensor(a!)
leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope, bool self_is_result) -> Tensor
len.Tensor(Tensor t) -> int
lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor
lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor
lerp_.Scalar(Tensor(a!) self, Tensor end, Scalar weight) -> Tensor(a!)
lerp_.Tensor(Tensor(a!) self, Tensor end, Tensor weight) -> Tensor(a!)
less.Scalar(Tensor self, Scalar other) -> Tensor
less.Tensor(Tensor self, Tensor other) -> Tensor
less_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)
less_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)
less_equal.Scalar(Tensor self, Scalar other) -> Tensor
less_equal.Tensor(Tensor self, Tensor other) -> Tensor
less_equal_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)
less_equal_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)
lgamma(Tensor self) -> Tensor
lgamma_(Tensor(a!) self) -> Tensor(a!)
lift(Tensor self) -> Tensor
lift_fresh(Tensor self) -> Tensor
lift_fresh_copy(Tensor self) -> Tensor
linalg__powsum(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor
linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor
linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)
linalg_cholesky_ex.L(Tensor self, *, bool upper=False, bool check_errors=False, Tensor(a!) L, Tensor(b!) info) -> (Tensor(a!) L, Tensor(b!) info)
linalg_cond(Tensor self, Scalar? p=None) -> Tensor
linalg_cond.p_str(Tensor self, str p) -> Tensor
linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor
linalg_det(Tensor A) -> Tensor
linalg_diagonal(Tensor A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor
linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)
linalg_eigh(Tensor self, str UPLO="L") -> (Tensor eigenvalues, Tensor eigenvectors)
linalg_eigh.eigvals(Tensor self, str UPLO="L", *, Tensor(a!) eigvals, Tensor(b!) eigvecs) -> (Tensor(a!) eigenvalues, Tensor(b!) eigenvectors)
linalg_eigvals(Tensor self) -> Tensor
linalg_eigvalsh(Tensor self, str UPLO="L") -> Tensor
linalg_householder_product(Tensor input, Tensor tau) -> Tensor
linalg_inv(Tensor A) -> Tensor
linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)
linalg_inv_ex.inverse(Tensor A, *, bool check_errors=False, Tensor(a!) inverse, Tensor(b!) info) -> (Tensor(a!) inverse, Tensor(b!) info)
linalg_ldl_factor(Tensor self, *, bool hermitian=False) -> (Tensor LD, Tensor pivots)
linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False) -> (Tensor LD, Tensor pivots, Tensor info)
linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor
linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) -> (Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)
linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)
linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)
linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, Tensor pivots, Tensor info)
linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor
linalg_matmul(Tensor self, Tensor other) -> Tensor
linalg_matrix_exp(Tensor self) -> Tensor
linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2, -1], bool keepdim=False, *, ScalarType? dtype=None) -> Tensor
linalg_matrix_norm.str_ord(Tensor self, str ord="fro", int[] dim=[-2, -1], bool keepdim=False, *, ScalarType? dtype=None) -> Tensor
linalg_matrix_power(Tensor self, int n) -> Tensor
linalg_matrix_rank(Tensor self, float tol, bool hermitian=False) -> Tensor
linalg_matrix_rank.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False) -> Tensor
linalg_matrix_rank.atol_rtol_tensor(Tensor input, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) -> Tensor
linalg_matrix_rank.out_tol_tensor(Tensor input, Tensor tol, bool hermitian=False, *, Tensor(a!) out) -> Tensor(a!)
linalg_matrix_rank.tol_tensor(Tensor input, Tensor tol, bool hermitian=False) -> Tensor
linalg_matrix_sqrth(Tensor self) -> Tensor
linalg_multi_dot(Tensor[] tensors) -> Tensor
linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor
linalg_norm.ord_str(Tensor self, str ord, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor
linalg_pinv(Tensor self, float rcond, bool hermitian=False) -> Tensor
linalg_pinv.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False) -> Tensor
linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) -> Tensor
linalg_pinv.out_rcond_tensor(Tensor self, Tensor rcond, bool hermitian=False, *, Tensor(a!) out) -> Tensor(a!)
linalg_pinv.rcond_tensor(Tensor self, Tensor rcond, bool hermitian=False) -> Tensor
linalg_polar(Tensor A) -> (Tensor U, Tensor H)
linalg_qr(Tensor A, str mode="reduced") -> (Tensor Q, Tensor R)
linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)
linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor
linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor info)
linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor
linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)
linalg_svd.U(Tensor A, bool full_matrices=True, *, str? driver=None, Tensor(a!) U, Tensor(b!) S, Tensor(c!) Vh) -> (Tensor(a!) U, Tensor(b!) S, Tensor(c!) Vh)
linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor
linalg_tensorinv(Tensor self, int ind=2) -> Tensor
linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor
linalg_vander(Tensor x, *, int? N=None) -> Tensor
linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor
linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor
linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor
linear_backward(Tensor self, Tensor grad_output, Tensor weight, bool[3] output_mask) -> (Tensor, Tensor, Tensor)
linspace(Scalar start, Scalar end, int steps, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
linspace.Scalar_Tensor(Scalar start, Tensor end, int steps, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
linspace.Tensor_Scalar(Tensor start, Scalar end, int steps, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
linspace.Tensor_Tensor(Tensor start, Tensor end, int steps, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
log(Tensor self) -> Tensor
log10(Tensor self) -> Tensor
log10_(Tensor(a!) self) -> Tensor(a!)
log1p(Tensor self) -> Tensor
log1p_(Tensor(a!) self) -> Tensor(a!)
log2(Tensor self) -> Tensor
log2_(Tensor(a!) self) -> Tensor(a!)
log_(Tensor(a!) self) -> Tensor(a!)
log_normal(Tensor self, float mean=1., float std=2., *, Generator? generator=None) -> Tensor
log_normal_(Tensor(a!) self, float mean=1., float std=2., *, Generator? generator=None) -> Tensor(a!)
log_sigmoid(Tensor self) -> Tensor
log_sigmoid_backward(Tensor grad_output, Tensor self, Tensor buffer) -> Tensor
log_sigmoid_forward(Tensor self) -> (Tensor output, Tensor buffer)
log_sigmoid_forward.output(Tensor self, *, Tensor(a!) output, Tensor(b!) buffer) -> (Tensor(a!), Tensor(b!))
log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor
logaddexp(Tensor self, Tensor other) -> Tensor
logaddexp2(Tensor self, Tensor other) -> Tensor
logcumsumexp(Tensor self, int dim) -> Tensor
logdet(Tensor self) -> Tensor
logical_and(Tensor self, Tensor other) -> Tensor
logical_and_(Tensor(a!) self, Tensor other) -> Tensor(a!)
logical_not(Tensor self) -> Tensor
logical_not_(Tensor(a!) self) -> Tensor(a!)
logical_or(Tensor self, Tensor other) -> Tensor
logical_or_(Tensor(a!) self, Tensor other) -> Tensor(a!)
logical_xor(Tensor self, Tensor other) -> Tensor
logical_xor_(Tensor(a!) self, Tensor other) -> Tensor(a!)
logit(Tensor self, float? eps=None) -> Tensor
logit_(Tensor(a!) self, float? eps=None) -> Tensor(a!)
logit_backward(Tensor grad_output, Tensor self, float? eps=None) -> Tensor
logspace(Scalar start, Scalar end, int steps, float base=10., *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
logspace.Scalar_Tensor(Scalar start, Tensor end, int steps, float base=10., *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
logspace.Tensor_Scalar(Tensor start, Scalar end, int steps, float base=10., *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
logspace.Tensor_Tensor(Tensor start, Tensor end, int steps, float base=10., *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor
lstm.data(Tensor data, Tensor batch_sizes, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor, Tensor)
lstm.input(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor, Tensor)
lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> (Tensor, Tensor)
lt.Scalar(Tensor self, Scalar other) -> Tensor
lt.Tensor(Tensor self, Tensor other) -> Tensor
lt_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)
lt_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)
lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor
lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) -> (Tensor P, Tensor L, Tensor U)
mH(Tensor self) -> Tensor
mH.a(Tensor self) -> Tensor
mT(Tensor self) -> Tensor
mT.a(Tensor self) -> Tensor
margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int reduction=1) -> Tensor
masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor
masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor
masked_fill_.Scalar(Tensor(a!) self, Tensor mask, Scalar value) -> Tensor(a!)
masked_fill_.Tensor(Tensor(a!) self, Tensor mask, Tensor value) -> Tensor(a!)
masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor
masked_scatter_(Tensor(a!) self, Tensor mask, Tensor source) -> Tensor(a!)
masked_scatter_backward(Tensor grad_output, Tensor mask, int[] sizes) -> Tensor
masked_select(Tensor self, Tensor mask) -> Tensor
masked_select_backward(Tensor grad, Tensor input, Tensor mask) -> Tensor
matmul(Tensor self, Tensor other) -> Tensor
matmul_backward(Tensor grad, Tensor self, Tensor other, bool[2] mask) -> (Tensor, Tensor)
matrix_H(Tensor self) -> Tensor
matrix_H.a(Tensor self) -> Tensor
matrix_exp(Tensor self) -> Tensor
matrix_exp_backward(Tensor self, Tensor grad) -> Tensor
matrix_power(Tensor self, int n) -> Tensor
max(Tensor self) -> Tensor
max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)
max.dim_max(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) max, Tensor(b!) max_values) -> (Tensor(a!) values, Tensor(b!) indices)
max.other(Tensor self, Tensor other) -> Tensor
max_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], int[1] dilation=[1], bool ceil_mode=False) -> Tensor
max_pool1d_with_indices(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], int[1] dilation=[1], bool ceil_mode=False) -> (Tensor, Tensor)
max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool ceil_mode=False) -> Tensor
max_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool ceil_mode=False) -> Tensor
max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)
max_pool2d_with_indices_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, int[2] dilation, bool ceil_mode, Tensor indices) -> Tensor
max_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, bool ceil_mode=False) -> Tensor
max_pool3d_with_indices(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)
max_pool3d_with_indices_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] stride, int[3] padding, int[3] dilation, bool ceil_mode, Tensor indices) -> Tensor
max_unpool2d(Tensor self, Tensor indices, int[2] output_size) -> Tensor
max_unpool3d(Tensor self, Tensor indices, int[3] output_size, int[3] stride, int[3] padding) -> Tensor
maximum(Tensor self, Tensor other) -> Tensor
mean(Tensor self, *, ScalarType? dtype=None) -> Tensor
mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor
median(Tensor self) -> Tensor
median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)
median.dim_values(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)
meshgrid(Tensor[] tensors) -> Tensor[]
meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]
min(Tensor self) -> Tensor
min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)
min.dim_min(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) min, Tensor(b!) min_indices) -> (Tensor(a!) values, Tensor(b!) indices)
min.other(Tensor self, Tensor other) -> Tensor
minimum(Tensor self, Tensor other) -> Tensor
mish(Tensor self) -> Tensor
mish_(Tensor(a!) self) -> Tensor(a!)
mish_backward(Tensor grad_output, Tensor self) -> Tensor
mm(Tensor self, Tensor mat2) -> Tensor
mm.dtype(Tensor self, Tensor mat2, ScalarType out_dtype) -> Tensor
mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)
mode.values(Tensor self, int dim=-1, bool keepdim=False, *, Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)
moveaxis.int(Tensor self, int source, int destination) -> Tensor
moveaxis.intlist(Tensor self, int[] source, int[] destination) -> Tensor
movedim.int(Tensor self, int source, int destination) -> Tensor
movedim.intlist(Tensor self, int[] source, int[] destination) -> Tensor
mps_convolution_backward(Tensor self, Tensor grad_output, Tensor weight, int[] padding, int[] stride, int[] dilation, int groups, bool[3] output_mask) -> (Tensor, Tensor, Tensor)
mps_convolution_transpose_backward(Tensor self, Tensor grad_output, Tensor weight, int[] padding, int[] output_padding, int[] stride, int[] dilation, int groups, bool[2] output_mask) -> (Tensor, Tensor)
mse_loss(Tensor self, Tensor target, int reduction=1) -> Tensor
mse_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor
msort(Tensor self) -> Tensor
mul.Scalar(Tensor self, Scalar other) -> Tensor
mul.Tensor(Tensor self, Tensor other) -> Tensor
mul_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)
mul_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)
multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? weight=None, int reduction=1) -> Tensor
multi_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, Scalar p, Scalar margin, Tensor? weight=None, int reduction=1) -> Tensor
multilabel_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor
multilabel_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, Tensor is_target) -> Tensor
multilabel_margin_loss_forward(Tensor self, Tensor target, int reduction) -> (Tensor output, Tensor is_target)
multilabel_margin_loss_forward.output(Tensor self, Tensor target, int reduction, *, Tensor(a!) output, Tensor(b!) is_target) -> (Tensor(a!), Tensor(b!))
multinomial(Tensor self, int num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor
multiply.Scalar(Tensor self, Scalar other) -> Tensor
multiply.Tensor(Tensor self, Tensor other) -> Tensor
multiply_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)
multiply_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)
mv(Tensor self, Tensor vec) -> Tensor
mvlgamma(Tensor self, int p) -> Tensor
mvlgamma_(Tensor(a!) self, int p) -> Tensor(a!)
nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor
nan_to_num_(Tensor(a!) self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor(a!)
nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor
nanmedian(Tensor self) -> Tensor
nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)
nanmedian.dim_values(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)
nanquantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation="linear") -> Tensor
nanquantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str interpolation="linear") -> Tensor
nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor
narrow(Tensor self, int dim, int start, int length) -> Tensor
narrow.Tensor(Tensor self, int dim, Tensor start, int length) -> Tensor
narrow_copy(Tensor self, int dim, int start, int length) -> Tensor
native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)
native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, Tensor? running_mean, Tensor? running_var, Tensor? save_mean, Tensor? save_invstd, bool train, float eps, bool[3] output_mask) -> (Tensor, Tensor, Tensor)
native_channel_shuffle(Tensor self, int groups) -> Tensor
native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)
native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor
native_group_norm(Tensor input, Tensor? weight, Tensor? bias, int N, int C, int HxW, int group, float eps) -> (Tensor, Tensor, Tensor)
native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, int N, int C, int HxW, int group, bool[3] output_mask) -> (Tensor, Tensor, Tensor)
native_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)
native_layer_norm_backward(Tensor grad_out, Tensor input, int[] normalized_shape, Tensor mean, Tensor rstd, Tensor? weight, Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor)
native_norm(Tensor self, Scalar p=2) -> Tensor
native_norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, ScalarType? dtype) -> Tensor
ne.Scalar(Tensor self, Scalar other) -> Tensor
ne.Tensor(Tensor self, Tensor other) -> Tensor
ne.Tensor_list(Tensor[] a, Tensor[] b) -> bool
ne_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)
ne_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)
neg(Tensor self) -> Tensor
neg_(Tensor(a!) self) -> Tensor(a!)
negative(Tensor self) -> Tensor
negative_(Tensor(a!) self) -> Tensor(a!)
new_empty(Tensor self, int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
new_empty_strided(Tensor self, int[] size, int[] stride, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
new_full(Tensor self, int[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
new_ones(Tensor self, int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
new_zeros(Tensor self, int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
nextafter(Tensor self, Tensor other) -> Tensor
nextafter_(Tensor(a!) self, Tensor other) -> Tensor(a!)
nll_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int ignore_index=-100) -> Tensor
nll_loss2d(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int ignore_index=-100) -> Tensor
nll_loss2d_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, int ignore_index, Tensor total_weight) -> Tensor
nll_loss2d_forward(Tensor self, Tensor target, Tensor? weight, int reduction, int ignore_index) -> (Tensor output, Tensor total_weight)
nll_loss2d_forward.output(Tensor self, Tensor target, Tensor? weight, int reduction, int ignore_index, *, Tensor(a!) output, Tensor(b!) total_weight) -> (Tensor(a!), Tensor(b!))
nll_loss_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, int ignore_index, Tensor total_weight) -> Tensor
nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction, int ignore_index) -> (Tensor output, Tensor total_weight)
nll_loss_forward.output(Tensor self, Tensor target, Tensor? weight, int reduction, int ignore_index, *, Tensor(a!) output, Tensor(b!) total_weight) -> (Tensor(a!), Tensor(b!))
nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int ignore_index=-100) -> Tensor
nonzero(Tensor self) -> Tensor
nonzero_numpy(Tensor self) -> Tensor[]
nonzero_static(Tensor self, *, int size, int fill_value=-1) -> Tensor
norm.Scalar(Tensor self, Scalar p=2) -> Tensor
norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor
norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, ScalarType dtype) -> Tensor
norm.ScalarOpt_dtype(Tensor self, Scalar? p, *, ScalarType dtype) -> Tensor
norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor
normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor
normal.Tensor_float(Tensor mean, float std=1., *, Generator? generator=None) -> Tensor
normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor
normal.float_float(float mean, float std, int[] size, *, Generator? generator=None, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
normal_(Tensor(a!) self, float mean=0., float std=1., *, Generator? generator=None) -> Tensor(a!)
normal_functional(Tensor self, float mean=0., float std=1., *, Generator? generator=None) -> Tensor
not_equal.Scalar(Tensor self, Scalar other) -> Tensor
not_equal.Tensor(Tensor self, Tensor other) -> Tensor
not_equal_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)
not_equal_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)
nuclear_norm(Tensor self, bool keepdim=False) -> Tensor
nuclear_norm.dim(Tensor self, int[2] dim, bool keepdim=False) -> Tensor
numel(Tensor self) -> int
numpy_T(Tensor self) -> Tensor
numpy_T.a(Tensor self) -> Tensor
one_hot(Tensor self, int num_classes=-1) -> Tensor
ones(int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
ones_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor
orgqr(Tensor self, Tensor input2) -> Tensor
ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor
outer(Tensor self, Tensor vec2) -> Tensor
output_nr(Tensor self) -> int
pad(Tensor self, int[] pad, str mode="constant", float? value=None) -> Tensor
pad_sequence(Tensor[] sequences, bool batch_first=False, float padding_value=0., str padding_side="right") -> Tensor
pairwise_distance(Tensor x1, Tensor x2, float p=2., float eps=9.9999999999999995e-07, bool keepdim=False) -> Tensor
pdist(Tensor self, float p=2.) -> Tensor
permute(Tensor self, int[] dims) -> Tensor
permute_copy(Tensor self, int[] dims) -> Tensor
pin_memory(Tensor self, Device? device=None) -> Tensor
pinverse(Tensor self, float rcond=1.0000000000000001e-15) -> Tensor
pixel_shuffle(Tensor self, int upscale_factor) -> Tensor
pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor
poisson(Tensor self, Generator? generator=None) -> Tensor
poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction) -> Tensor
polar(Tensor abs, Tensor angle) -> Tensor
polygamma(int n, Tensor self) -> Tensor
polygamma_(Tensor(a!) self, int n) -> Tensor(a!)
positive(Tensor self) -> Tensor
pow.Scalar(Scalar self, Tensor exponent) -> Tensor
pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor
pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor
pow_.Scalar(Tensor(a!) self, Scalar exponent) -> Tensor(a!)
pow_.Tensor(Tensor(a!) self, Tensor exponent) -> Tensor(a!)
prelu(Tensor self, Tensor weight) -> Tensor
prod(Tensor self, *, ScalarType? dtype=None) -> Tensor
prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor
put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor
put_(Tensor(a!) self, Tensor index, Tensor source, bool accumulate=False) -> Tensor(a!)
quantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation="linear") -> Tensor
quantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str interpolation="linear") -> Tensor
rad2deg(Tensor self) -> Tensor
rad2deg_(Tensor(a!) self) -> Tensor(a!)
rand(int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
rand.generator(int[] size, *, Generator? generator, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
rand_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor
rand_like.generator(Tensor self, *, Generator? generator, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor
randint(int high, int[] size, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
randint.generator(int high, int[] size, *, Generator? generator, ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
randint.low(int low, int high, int[] size, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
randint.low_generator(int low, int high, int[] size, *, Generator? generator, ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
randint_like(Tensor self, int high, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor
randint_like.Tensor(Tensor self, Tensor high, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor
randint_like.Tensor_generator(Tensor self, Tensor high, *, Generator? generator, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor
randint_like.generator(Tensor self, int high, *, Generator? generator, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor
randint_like.low_dtype(Tensor self, int low, int high, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor
randint_like.low_generator_dtype(Tensor self, int low, int high, *, Generator? generator, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor
randn(int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
randn.generator(int[] size, *, Generator? generator, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
randn_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor
randn_like.generator(Tensor self, *, Generator? generator, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor
random(Tensor self, *, Generator? generator=None) -> Tensor
random.from(Tensor self, int from, int? to, *, Generator? generator=None) -> Tensor
random.to(Tensor self, int to, *, Generator? generator=None) -> Tensor
random_(Tensor(a!) self, *, Generator? generator=None) -> Tensor(a!)
random_.from(Tensor(a!) self, int from, int? to, *, Generator? generator=None) -> Tensor(a!)
random_.to(Tensor(a!) self, int to, *, Generator? generator=None) -> Tensor(a!)
randperm(int n, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
randperm.generator(int n, *, Generator? generator, ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
range(Scalar start, Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
range.out_(Scalar start, Scalar end, *, Tensor(a!) out) -> Tensor(a!)
range.step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
ravel(Tensor self) -> Tensor
real(Tensor self) -> Tensor
reciprocal(Tensor self) -> Tensor
reciprocal_(Tensor(a!) self) -> Tensor(a!)
reflection_pad1d(Tensor self, int[2] padding) -> Tensor
reflection_pad1d_backward(Tensor grad_output, Tensor self, int[2] padding) -> Tensor
reflection_pad2d(Tensor self, int[4] padding) -> Tensor
reflection_pad2d_backward(Tensor grad_output, Tensor self, int[4] padding) -> Tensor
reflection_pad3d(Tensor self, int[6] padding) -> Tensor
reflection_pad3d_backward(Tensor grad_output, Tensor self, int[6] padding) -> Tensor
relu(Tensor self) -> Tensor
relu6(Tensor self) -> Tensor
relu6_(Tensor(a!) self) -> Tensor(a!)
relu_(Tensor(a!) self) -> Tensor(a!)
remainder.Scalar(Tensor self, Scalar other) -> Tensor
remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor
remainder.Tensor(Tensor self, Tensor other) -> Tensor
remainder_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)
remainder_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)
remove.Tensor(Tensor[](a!) self, Tensor el) -> ()
renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor
renorm_(Tensor(a!) self, Scalar p, int dim, Scalar maxnorm) -> Tensor(a!)
repeat(Tensor self, int[] repeats) -> Tensor
repeat_interleave.Tensor(Tensor repeats, *, int? output_size=None) -> Tensor
repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, int? output_size=None) -> Tensor
repeat_interleave.self_int(Tensor self, int repeats, int? dim=None, *, int? output_size=None) -> Tensor
replication_pad1d(Tensor self, int[2] padding) -> Tensor
replication_pad1d_backward(Tensor grad_output, Tensor self, int[2] padding) -> Tensor
replication_pad2d(Tensor self, int[4] padding) -> Tensor
replication_pad2d_backward(Tensor grad_output, Tensor self, int[4] padding) -> Tensor
replication_pad3d(Tensor self, int[6] padding) -> Tensor
replication_pad3d_backward(Tensor grad_output, Tensor self, int[6] padding) -> Tensor
requires_grad_(Tensor(a!) self, bool requires_grad=True) -> Tensor(a!)
reshape(Tensor self, int[] shape) -> Tensor
reshape_as(Tensor self, Tensor other) -> Tensor
resize(Tensor self, int[] size, *, MemoryFormat? memory_format=None) -> Tensor
resize_(Tensor(a!) self, int[] size, *, MemoryFormat? memory_format=None) -> Tensor(a!)
resize_as(Tensor self, Tensor the_template, *, MemoryFormat? memory_format=None) -> Tensor
resize_as_(Tensor(a!) self, Tensor the_template, *, MemoryFormat? memory_format=None) -> Tensor(a!)
resolve_conj(Tensor self) -> Tensor
resolve_neg(Tensor self) -> Tensor
result_type.Scalar(Tensor tensor, Scalar other) -> ScalarType
result_type.Scalar_Tensor(Scalar scalar, Tensor tensor) -> ScalarType
result_type.Tensor(Tensor tensor, Tensor other) -> ScalarType
retain_grad(Tensor(a!) self) -> ()
retains_grad(Tensor self) -> bool
rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor
rnn_relu.data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor)
rnn_relu.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)
rnn_relu_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor
rnn_tanh.data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor)
rnn_tanh.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)
rnn_tanh_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor
roll(Tensor self, int[1] shifts, int[1] dims=[]) -> Tensor
rot90(Tensor self, int k=1, int[] dims=[0, 1]) -> Tensor
round(Tensor self) -> Tensor
round.decimals(Tensor self, *, int decimals) -> Tensor
round_(Tensor(a!) self) -> Tensor(a!)
round_.decimals(Tensor(a!) self, *, int decimals) -> Tensor(a!)
row_stack(Tensor[] tensors) -> Tensor
rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool training=False, Generator? generator=None) -> Tensor
rrelu_(Tensor(a!) self, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool training=False, Generator? generator=None) -> Tensor(a!)
rrelu_with_noise(Tensor self, Tensor(b!) noise, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool training=False, Generator? generator=None) -> Tensor
rrelu_with_noise_(Tensor(a!) self, Tensor(b!) noise, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool training=False, Generator? generator=None) -> Tensor(a!)
rrelu_with_noise_backward(Tensor grad_output, Tensor self, Tensor noise, Scalar lower, Scalar upper, bool training, bool self_is_result) -> Tensor
rrelu_with_noise_functional(Tensor self, Tensor noise, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool training=False, Generator? generator=None) -> (Tensor, Tensor noise_out)
rsqrt(Tensor self) -> Tensor
rsqrt_(Tensor(a!) self) -> Tensor(a!)
rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor
rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
scalar_tensor(Scalar s, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0., bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor
scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor
scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor
scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor
scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor
scatter_.reduce(Tensor(a!) self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor(a!)
scatter_.src(Tensor(a!) self, int dim, Tensor index, Tensor src) -> Tensor(a!)
scatter_.value(Tensor(a!) self, int dim, Tensor index, Scalar value) -> Tensor(a!)
scatter_.value_reduce(Tensor(a!) self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor(a!)
scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor
scatter_add_(Tensor(a!) self, int dim, Tensor index, Tensor src) -> Tensor(a!)
scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> Tensor
scatter_reduce_.two(Tensor(a!) self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> Tensor(a!)
searchsorted.Scalar(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None) -> Tensor
searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None) -> Tensor
segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, Tensor? offsets=None, int axis=0, bool unsafe=False, Scalar? initial=None) -> Tensor
select.int(Tensor self, int dim, int index) -> Tensor
select_backward(Tensor grad_output, int[] input_sizes, int dim, int index) -> Tensor
select_copy.int(Tensor self, int dim, int index) -> Tensor
select_scatter(Tensor self, Tensor src, int dim, int index) -> Tensor
selu(Tensor self) -> Tensor
selu_(Tensor(a!) self) -> Tensor(a!)
set(Tensor self) -> Tensor
set.source_Storage(Tensor self, Storage source) -> Tensor
set.source_Storage_storage_offset(Tensor self, Storage source, int storage_offset, int[] size, int[] stride=[]) -> Tensor
set.source_Tensor(Tensor self, Tensor source) -> Tensor
set_(Tensor(a!) self) -> Tensor(a!)
set_.source_Storage(Tensor(a!) self, Storage source) -> Tensor(a!)
set_.source_Storage_storage_offset(Tensor(a!) self, Storage source, int storage_offset, int[] size, int[] stride=[]) -> Tensor(a!)
set_.source_Tensor(Tensor(a!) self, Tensor source) -> Tensor(a!)
set_.source_Tensor_storage_offset(Tensor(a!) self, Tensor source, int storage_offset, int[] size, int[] stride=[]) -> Tensor(a!)
set_data(Tensor(a!) self, Tensor new_data) -> ()
sgn(Tensor self) -> Tensor
sgn_(Tensor(a!) self) -> Tensor(a!)
shallow_copy_data_(Tensor(a!) self, Tensor source) -> Tensor(a!)
sigmoid(Tensor self) -> Tensor
sigmoid_(Tensor(a!) self) -> Tensor(a!)
sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor
sign(Tensor self) -> Tensor
sign_(Tensor(a!) self) -> Tensor(a!)
signbit(Tensor self) -> Tensor
silu(Tensor self) -> Tensor
silu_(Tensor(a!) self) -> Tensor(a!)
silu_backward(Tensor grad_output, Tensor self) -> Tensor
sin(Tensor self) -> Tensor
sin_(Tensor(a!) self) -> Tensor(a!)
sinc(Tensor self) -> Tensor
sinc_(Tensor(a!) self) -> Tensor(a!)
sinh(Tensor self) -> Tensor
sinh_(Tensor(a!) self) -> Tensor(a!)
size(Tensor self) -> int[]
size.int(Tensor self, int dim) -> int
slice.Tensor(Tensor self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor
slice_backward(Tensor grad_output, int[] input_sizes, int dim, int start, int end, int step) -> Tensor
slice_copy.Tensor(Tensor self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor
slice_inverse(Tensor self, Tensor src, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor
slice_scatter(Tensor self, Tensor src, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor
slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)
smm(Tensor self, Tensor mat2) -> Tensor
smooth_l1_loss(Tensor self, Tensor target, int reduction=1, float beta=1.) -> Tensor
smooth_l1_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float beta) -> Tensor
soft_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor
soft_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor
softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor
softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor
softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold) -> Tensor
softshrink(Tensor self, Scalar lambd=0.5) -> Tensor
softshrink_backward(Tensor grad_output, Tensor self, Scalar lambd) -> Tensor
sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)
sort.Tensor(Tensor[](a!) self, bool reverse=False) -> ()
sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)
sort.values(Tensor self, int dim=-1, bool descending=False, *, Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)
sort.values_stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False, Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)
sorted.Tensor(Tensor[] input) -> Tensor[]
special_airy_ai(Tensor x) -> Tensor
special_bessel_j0(Tensor self) -> Tensor
special_bessel_j1(Tensor self) -> Tensor
special_bessel_y0(Tensor self) -> Tensor
special_bessel_y1(Tensor self) -> Tensor
special_chebyshev_polynomial_t(Tensor x, Tensor n) -> Tensor
special_chebyshev_polynomial_t.n_scalar(Tensor x, Scalar n) -> Tensor
special_chebyshev_polynomial_t.x_scalar(Scalar x, Tensor n) -> Tensor
special_chebyshev_polynomial_u(Tensor x, Tensor n) -> Tensor
special_chebyshev_polynomial_u.n_scalar(Tensor x, Scalar n) -> Tensor
special_chebyshev_polynomial_u.x_scalar(Scalar x, Tensor n) -> Tensor
special_chebyshev_polynomial_v(Tensor x, Tensor n) -> Tensor
special_chebyshev_polynomial_v.n_scalar(Tensor x, Scalar n) -> Tensor
special_chebyshev_polynomial_v.x_scalar(Scalar x, Tensor n) -> Tensor
special_chebyshev_polynomial_w(Tensor x, Tensor n) -> Tensor
special_chebyshev_polynomial_w.n_scalar(Tensor x, Scalar n) -> Tensor
special_chebyshev_polynomial_w.x_scalar(Scalar x, Tensor n) -> Tensor
special_digamma(Tensor self) -> Tensor
special_entr(Tensor self) -> Tensor
special_erf(Tensor self) -> Tensor
special_erfc(Tensor self) -> Tensor
special_erfcx(Tensor self) -> Tensor
special_erfinv(Tensor self) -> Tensor
special_exp2(Tensor self) -> Tensor
special_expit(Tensor self) -> Tensor
special_expm1(Tensor self) -> Tensor
special_gammainc(Tensor self, Tensor other) -> Tensor
special_gammaincc(Tensor self, Tensor other) -> Tensor
special_gammaln(Tensor self) -> Tensor
special_hermite_polynomial_h(Tensor x, Tensor n) -> Tensor
special_hermite_polynomial_h.n_scalar(Tensor x, Scalar n) -> Tensor
special_hermite_polynomial_h.x_scalar(Scalar x, Tensor n) -> Tensor
special_hermite_polynomial_he(Tensor x, Tensor n) -> Tensor
special_hermite_polynomial_he.n_scalar(Tensor x, Scalar n) -> Tensor
special_hermite_polynomial_he.x_scalar(Scalar x, Tensor n) -> Tensor
special_i0(Tensor self) -> Tensor
special_i0e(Tensor self) -> Tensor
special_i1(Tensor self) -> Tensor
special_i1e(Tensor self) -> Tensor
special_laguerre_polynomial_l(Tensor x, Tensor n) -> Tensor
special_laguerre_polynomial_l.n_scalar(Tensor x, Scalar n) -> Tensor
special_laguerre_polynomial_l.x_scalar(Scalar x, Tensor n) -> Tensor
special_legendre_polynomial_p(Tensor x, Tensor n) -> Tensor
special_legendre_polynomial_p.n_scalar(Tensor x, Scalar n) -> Tensor
special_legendre_polynomial_p.x_scalar(Scalar x, Tensor n) -> Tensor
special_log1p(Tensor self) -> Tensor
special_log_ndtr(Tensor self) -> Tensor
special_log_softmax(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor
special_logit(Tensor self, float? eps=None) -> Tensor
special_logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor
special_modified_bessel_i0(Tensor self) -> Tensor
special_modified_bessel_i1(Tensor self) -> Tensor
special_modified_bessel_k0(Tensor self) -> Tensor
special_modified_bessel_k1(Tensor self) -> Tensor
special_multigammaln(Tensor self, int p) -> Tensor
special_ndtr(Tensor self) -> Tensor
special_ndtri(Tensor self) -> Tensor
special_polygamma(int n, Tensor self) -> Tensor
special_psi(Tensor self) -> Tensor
special_round(Tensor self, *, int decimals=0) -> Tensor
special_scaled_modified_bessel_k0(Tensor x) -> Tensor
special_scaled_modified_bessel_k1(Tensor x) -> Tensor
special_shifted_chebyshev_polynomial_t(Tensor x, Tensor n) -> Tensor
special_shifted_chebyshev_polynomial_t.n_scalar(Tensor x, Scalar n) -> Tensor
special_shifted_chebyshev_polynomial_t.x_scalar(Scalar x, Tensor n) -> Tensor
special_shifted_chebyshev_polynomial_u(Tensor x, Tensor n) -> Tensor
special_shifted_chebyshev_polynomial_u.n_scalar(Tensor x, Scalar n) -> Tensor
special_shifted_chebyshev_polynomial_u.x_scalar(Scalar x, Tensor n) -> Tensor
special_shifted_chebyshev_polynomial_v(Tensor x, Tensor n) -> Tensor
special_shifted_chebyshev_polynomial_v.n_scalar(Tensor x, Scalar n) -> Tensor
special_shifted_chebyshev_polynomial_v.x_scalar(Scalar x, Tensor n) -> Tensor
special_shifted_chebyshev_polynomial_w(Tensor x, Tensor n) -> Tensor
special_shifted_chebyshev_polynomial_w.n_scalar(Tensor x, Scalar n) -> Tensor
special_shifted_chebyshev_polynomial_w.x_scalar(Scalar x, Tensor n) -> Tensor
special_sinc(Tensor self) -> Tensor
special_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor
special_spherical_bessel_j0(Tensor x) -> Tensor
special_xlog1py(Tensor self, Tensor other) -> Tensor
special_xlog1py.other_scalar(Tensor self, Scalar other) -> Tensor
special_xlog1py.self_scalar(Scalar self, Tensor other) -> Tensor
special_xlogy(Tensor self, Tensor other) -> Tensor
special_xlogy.other_scalar(Tensor self, Scalar other) -> Tensor
special_xlogy.self_scalar(Scalar self, Tensor other) -> Tensor
special_zeta(Tensor self, Tensor other) -> Tensor
special_zeta.other_scalar(Tensor self, Scalar other) -> Tensor
special_zeta.self_scalar(Scalar self, Tensor other) -> Tensor
split(Tensor self, int[] split_sizes, int dim=0) -> Tensor[]
split.Tensor(Tensor self, int split_size, int dim=0) -> Tensor[]
split.sizes(Tensor self, int[] split_size, int dim=0) -> Tensor[]
split_copy.Tensor(Tensor self, int split_size, int dim=0) -> Tensor[]
split_with_sizes(Tensor self, int[] split_sizes, int dim=0) -> Tensor[]
split_with_sizes_copy(Tensor self, int[] split_sizes, int dim=0) -> Tensor[]
sqrt(Tensor self) -> Tensor
sqrt_(Tensor(a!) self) -> Tensor(a!)
square(Tensor self) -> Tensor
square_(Tensor(a!) self) -> Tensor(a!)
squeeze(Tensor self) -> Tensor
squeeze.dim(Tensor self, int dim) -> Tensor
squeeze.dims(Tensor self, int[] dim) -> Tensor
squeeze_(Tensor(a!) self) -> Tensor(a!)
squeeze_.dim(Tensor(a!) self, int dim) -> Tensor(a!)
squeeze_.dims(Tensor(a!) self, int[] dim) -> Tensor(a!)
squeeze_copy(Tensor self) -> Tensor
squeeze_copy.dim(Tensor self, int dim) -> Tensor
squeeze_copy.dims(Tensor self, int[] dim) -> Tensor
sspaddmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor
stack(Tensor[] tensors, int dim=0) -> Tensor
std(Tensor self, bool unbiased=True) -> Tensor
std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor
std.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor
std_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)
std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)
std_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)
stft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool normalized=False, bool? onesided=None, bool? return_complex=None, bool? align_to_window=None) -> Tensor
stft.center(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool center=True, str pad_mode="reflect", bool normalized=False, bool? onesided=None, bool? return_complex=None, bool? align_to_window=None) -> Tensor
storage_offset(Tensor self) -> int
stride(Tensor self) -> int[]
stride.int(Tensor self, int dim) -> int
sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor
sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
sub_.Scalar(Tensor(a!) self, Scalar other, Scalar alpha=1) -> Tensor(a!)
sub_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)
subtract.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor
subtract.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
subtract_.Scalar(Tensor(a!) self, Scalar other, Scalar alpha=1) -> Tensor(a!)
subtract_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)
sum(Tensor self, *, ScalarType? dtype=None) -> Tensor
sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor
sum_to_size(Tensor self, int[] size) -> Tensor
svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)
svd.U(Tensor self, bool some=True, bool compute_uv=True, *, Tensor(a!) U, Tensor(b!) S, Tensor(c!) V) -> (Tensor(a!) U, Tensor(b!) S, Tensor(c!) V)
swapaxes(Tensor self, int axis0, int axis1) -> Tensor
swapaxes_(Tensor(a!) self, int axis0, int axis1) -> Tensor(a!)
swapdims(Tensor self, int dim0, int dim1) -> Tensor
swapdims_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)
sym_is_contiguous(Tensor self, MemoryFormat memory_format=0) -> SymBool
sym_numel(Tensor self) -> int
sym_size(Tensor self) -> int[]
sym_size.int(Tensor self, int dim) -> int
sym_storage_offset(Tensor self) -> int
sym_stride(Tensor self) -> int[]
sym_stride.int(Tensor self, int dim) -> int
t(Tensor self) -> Tensor
t_(Tensor(a!) self) -> Tensor(a!)
t_copy(Tensor self) -> Tensor
take(Tensor self, Tensor index) -> Tensor
take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor
tan(Tensor self) -> Tensor
tan_(Tensor(a!) self) -> Tensor(a!)
tanh(Tensor self) -> Tensor
tanh_(Tensor(a!) self) -> Tensor(a!)
tanh_backward(Tensor grad_output, Tensor output) -> Tensor
tensor.bool(bool t, *, ScalarType? dtype=None, Device? device=None, bool requires_grad=False) -> Tensor
tensor.complex(complex t, *, ScalarType? dtype=None, Device? device=None, bool requires_grad=False) -> Tensor
tensor.float(float t, *, ScalarType? dtype=None, Device? device=None, bool requires_grad=False) -> Tensor
tensor.int(int t, *, ScalarType? dtype=None, Device? device=None, bool requires_grad=False) -> Tensor
tensor_split.indices(Tensor self, int[] indices, int dim=0) -> Tensor[]
tensor_split.sections(Tensor self, int sections, int dim=0) -> Tensor[]
tensor_split.tensor_indices_or_sections(Tensor self, Tensor tensor_indices_or_sections, int dim=0) -> Tensor[]
tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor
thnn_conv2d(Tensor self, Tensor weight, int[2] kernel_size, Tensor? bias=None, int[2] stride=[1, 1], int[2] padding=[0, 0]) -> Tensor
threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor
threshold_(Tensor(a!) self, Scalar threshold, Scalar value) -> Tensor(a!)
threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor
tile(Tensor self, int[] dims) -> Tensor
to.device(Tensor self, Device device, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor
to.dtype(Tensor self, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor
to.dtype_layout(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor
to.other(Tensor self, Tensor other, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor
to_dense(Tensor self, ScalarType? dtype=None, *, bool? masked_grad=None) -> Tensor
to_dense_backward(Tensor grad, Tensor input, bool? masked_grad=None) -> Tensor
topk(Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)
topk.values(Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True, *, Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)
trace(Tensor self) -> Tensor
trace_backward(Tensor grad, int[] sizes) -> Tensor
transpose.int(Tensor self, int dim0, int dim1) -> Tensor
transpose_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)
transpose_copy.int(Tensor self, int dim0, int dim1) -> Tensor
trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor
trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor
trapz.dx(Tensor y, *, float dx=1., int dim=-1) -> Tensor
trapz.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor
triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) -> (Tensor solution, Tensor cloned_coefficient)
triangular_solve.X(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False, *, Tensor(a!) X, Tensor(b!) M) -> (Tensor(a!) solution, Tensor(b!) cloned_coefficient)
tril(Tensor self, int diagonal=0) -> Tensor
tril_(Tensor(a!) self, int diagonal=0) -> Tensor(a!)
tril_indices(int row, int col, int offset=0, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1., float p=2., float eps=9.9999999999999995e-07, bool swap=False, int reduction=1) -> Tensor
triu(Tensor self, int diagonal=0) -> Tensor
triu_(Tensor(a!) self, int diagonal=0) -> Tensor(a!)
triu_indices(int row, int col, int offset=0, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
true_divide.Scalar(Tensor self, Scalar other) -> Tensor
true_divide.Tensor(Tensor self, Tensor other) -> Tensor
true_divide_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)
true_divide_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)
trunc(Tensor self) -> Tensor
trunc_(Tensor(a!) self) -> Tensor(a!)
type_as(Tensor self, Tensor other) -> Tensor
unbind.int(Tensor self, int dim=0) -> Tensor[]
unbind_copy.int(Tensor self, int dim=0) -> Tensor[]
unflatten.int(Tensor self, int dim, int[] sizes) -> Tensor
unflatten_dense_tensors(Tensor flat, Tensor[] tensors) -> Tensor[]
unfold(Tensor self, int dimension, int size, int step) -> Tensor
unfold_backward(Tensor grad_in, int[] input_sizes, int dim, int size, int step) -> Tensor
unfold_copy(Tensor self, int dimension, int size, int step) -> Tensor
uniform(Tensor self, float from=0., float to=1., *, Generator? generator=None) -> Tensor
uniform_(Tensor(a!) self, float from=0., float to=1., *, Generator? generator=None) -> Tensor(a!)
unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) -> (Tensor, Tensor, Tensor)
unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)
unique_dim_consecutive(Tensor self, int dim, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)
unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]
unsafe_split.Tensor(Tensor self, int split_size, int dim=0) -> Tensor[]
unsafe_split_with_sizes(Tensor self, int[] split_sizes, int dim=0) -> Tensor[]
unsqueeze(Tensor self, int dim) -> Tensor
unsqueeze_(Tensor(a!) self, int dim) -> Tensor(a!)
unsqueeze_copy(Tensor self, int dim) -> Tensor
upsample_bicubic2d(Tensor self, int[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor
upsample_bicubic2d.vec(Tensor input, int[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor
upsample_bicubic2d_backward(Tensor grad_output, int[2] output_size, int[4] input_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor
upsample_bilinear2d(Tensor self, int[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor
upsample_bilinear2d.vec(Tensor input, int[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor
upsample_bilinear2d_backward(Tensor grad_output, int[2] output_size, int[4] input_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor
upsample_linear1d(Tensor self, int[1] output_size, bool align_corners, float? scales=None) -> Tensor
upsample_linear1d.vec(Tensor input, int[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor
upsample_linear1d_backward(Tensor grad_output, int[1] output_size, int[3] input_size, bool align_corners, float? scales=None) -> Tensor
upsample_nearest1d(Tensor self, int[1] output_size, float? scales=None) -> Tensor
upsample_nearest1d.vec(Tensor input, int[]? output_size, float[]? scale_factors) -> Tensor
upsample_nearest1d_backward(Tensor grad_output, int[1] output_size, int[3] input_size, float? scales=None) -> Tensor
upsample_nearest2d(Tensor self, int[2] output_size, float? scales_h=None, float? scales_w=None) -> Tensor
upsample_nearest2d.vec(Tensor input, int[]? output_size, float[]? scale_factors) -> Tensor
upsample_nearest2d_backward(Tensor grad_output, int[2] output_size, int[4] input_size, float? scales_h=None, float? scales_w=None) -> Tensor
upsample_nearest3d(Tensor self, int[3] output_size, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor
upsample_nearest3d.vec(Tensor input, int[]? output_size, float[]? scale_factors) -> Tensor
upsample_nearest3d_backward(Tensor grad_output, int[3] output_size, int[5] input_size, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor
upsample_trilinear3d(Tensor self, int[3] output_size, bool align_corners, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor
upsample_trilinear3d.vec(Tensor input, int[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor
upsample_trilinear3d_backward(Tensor grad_output, int[3] output_size, int[5] input_size, bool align_corners, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor
value_selecting_reduction_backward(Tensor grad, int dim, Tensor indices, int[] sizes, bool keepdim) -> Tensor
values(Tensor self) -> Tensor
values_copy(Tensor self) -> Tensor
vander(Tensor x, int? N=None, bool increasing=False) -> Tensor
var(Tensor self, bool unbiased=True) -> Tensor
var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor
var.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor
var_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)
var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)
var_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)
vdot(Tensor self, Tensor other) -> Tensor
view(Tensor self, int[] size) -> Tensor
view.dtype(Tensor self, ScalarType dtype) -> Tensor
view_as(Tensor self, Tensor other) -> Tensor
view_as_complex(Tensor self) -> Tensor
view_as_complex_copy(Tensor self) -> Tensor
view_as_real(Tensor self) -> Tensor
view_as_real_copy(Tensor self) -> Tensor
view_copy(Tensor self, int[] size) -> Tensor
view_copy.dtype(Tensor self, ScalarType dtype) -> Tensor
vsplit.array(Tensor self, int[] indices) -> Tensor[]
vsplit.int(Tensor self, int sections) -> Tensor[]
vstack(Tensor[] tensors) -> Tensor
where(Tensor condition) -> Tensor[]
where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor
where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor
where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor
where.self(Tensor condition, Tensor self, Tensor other) -> Tensor
xlogy.OutScalar_Other(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)
xlogy.OutScalar_Self(Scalar self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)
xlogy.OutTensor(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)
xlogy.Scalar_Other(Tensor self, Scalar other) -> Tensor
xlogy.Scalar_Self(Scalar self, Tensor other) -> Tensor
xlogy.Tensor(Tensor self, Tensor other) -> Tensor
xlogy_.Scalar_Other(Tensor(a!) self, Scalar other) -> Tensor(a!)
xlogy_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)
zero(Tensor self) -> Tensor
zero_(Tensor(a!) self) -> Tensor(a!)
zeros(int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
zeros_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor
"""
