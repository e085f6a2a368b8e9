// The matmul of every format. Included inside an ISA's namespace and target region, after the tiles.

MatmulKernel matmul_of(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return matmul<ColumnTile<PackedF32>>;
    case DType::kF16:
      return matmul<ColumnTile<PackedF16>>;
    case DType::kBF16:
      return matmul<ColumnTile<PackedBF16>>;
    case DType::kQ8_0:
      return block_matmul<PackedQ8_0>;
    case DType::kQ4_0:
      return block_matmul<PackedQ4_0>;
    case DType::kQ4_1:
      return block_matmul<PackedQ4_1>;
    case DType::kQ5_0:
      return block_matmul<PackedQ5_0>;
    case DType::kQ5_1:
      return block_matmul<PackedQ5_1>;
    case DType::kQ4_K:
      return block_matmul<PackedQ4_K>;
    case DType::kQ5_K:
      return block_matmul<PackedQ5_K>;
    case DType::kQ6_K:
      return block_matmul<PackedQ6_K>;
  }
  return nullptr;
}
