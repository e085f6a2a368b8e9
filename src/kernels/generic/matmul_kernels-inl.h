// The matmul kernels of a KernelTable (contracts there), declared inside the namespace of each ISA.

bool quantize_row(const float* x, std::int64_t k, std::int32_t token, std::int32_t num_tokens,
                  void* quantized);
bool quantize_row_wide(const float* x, std::int64_t k, std::int32_t token, std::int32_t num_tokens,
                       void* quantized);
// Of the fast mode's format (wide.h).
void wide_matmul(const MatmulArgs& args);
// Of the split format (split.h).
void split_matmul(const MatmulArgs& args);
void split_bound(const BoundArgs& args);
void split_refine(const BoundArgs& args);
// FormatKernels::matmul of a format.
MatmulKernel matmul_of(DType dtype);
