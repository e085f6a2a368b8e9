// Gathers the kernels of one instruction set. Included inside each ISA's namespace, in baseline code.

KernelTable make_table(const char* isa) {
  KernelTable table{
      .isa = isa,
      .formats = {},
      .wide_formats = {},
      .split = split_packing(),
      .activation_bytes = activation_bytes,
      .quantize_row = quantize_row,
      .quantize_row_wide = quantize_row_wide,
      .rms_norm = rms_norm,
      .rms_norm_add = rms_norm_add,
      .rope = rope,
      .silu_mul = silu_mul,
      .gelu_tanh_mul = gelu_tanh_mul,
      .add = add,
      .scale = scale,
      .write_kv = write_kv,
      .convert_cell = convert_cell,
      .measure_cell = measure_cell,
      .attention = attention,
      .attention_merge = attention_merge,
      .tile_maxima = tile_maxima,
      .sum_exp = sum_exp,
  };
  for (const DTypeInfo& info : kDTypeInfos) {
    FormatKernels& format = table.formats[static_cast<int>(info.dtype)];
    format = packing_of(info.dtype);
    format.matmul = matmul_of(info.dtype);
    FormatKernels& wide = table.wide_formats[static_cast<int>(info.dtype)];
    wide = wide_packing_of(info.dtype);
    wide.matmul = wide.reads_floats ? format.matmul : wide_matmul;
  }
  table.split.matmul = split_matmul;
  table.split.bound = split_bound;
  table.split.refine = split_refine;
  return table;
}
