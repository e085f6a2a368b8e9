// Gathers the kernels of one instruction set. Included inside each ISA's namespace, in baseline code.

KernelTable make_table(const char* isa) {
  KernelTable table{
      .isa = isa,
      .formats = {},
      .w8a8_formats = {},
      .nibble_planes = nibble_plane_packing(),
      .activation_bytes = activation_bytes,
      .quantize_row = quantize_row,
      .quantize_row_w8a8 = quantize_row_w8a8,
      .rms_norm = rms_norm,
      .rms_norm_add = rms_norm_add,
      .layer_norm = layer_norm,
      .rope = rope,
      .silu_mul = silu_mul,
      .gelu_tanh_mul = gelu_tanh_mul,
      .gelu_erf_mul = gelu_erf_mul,
      .swiglu_oai = swiglu_oai,
      .add = add,
      .scale = scale,
      .add_scaled = add_scaled,
      .soft_cap = soft_cap,
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
    FormatKernels& w8a8 = table.w8a8_formats[static_cast<int>(info.dtype)];
    w8a8 = w8a8_packing_of(info.dtype);
    w8a8.matmul = w8a8.reads_floats ? format.matmul : w8a8_matmul;
  }
  table.byte_columns = byte_column_packing();
  table.byte_columns.matmul = byte_column_matmul;
  table.nibble_planes.matmul = nibble_plane_matmul;
  table.nibble_planes.bound = argmax_bound;
  table.nibble_planes.refine = argmax_refine;
  return table;
}
