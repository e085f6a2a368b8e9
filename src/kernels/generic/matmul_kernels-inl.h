// The matmul kernels of a KernelTable (contracts there), declared inside the namespace of each ISA.

bool quantize_row(const float* x, std::int64_t k, std::int32_t token, std::int32_t num_tokens,
                  void* quantized);
bool quantize_row_w8a8(const float* x, std::int64_t k, std::int32_t token, std::int32_t num_tokens,
                       void* quantized);
// For the fast mode's format (w8a8.h).
void w8a8_matmul(const MatmulArgs& args);
// For small matrices in bytes (byte_columns.h).
void byte_column_matmul(const MatmulArgs& args);
// For nibble planes (nibble_planes.h).
void nibble_plane_matmul(const MatmulArgs& args);
void argmax_bound(const BoundArgs& args);
void argmax_refine(const BoundArgs& args);
// FormatKernels::matmul of a format.
MatmulKernel matmul_of(DType dtype);
