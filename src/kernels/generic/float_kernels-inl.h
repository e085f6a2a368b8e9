// The float kernels of a KernelTable (contracts there), declared inside the namespace of each ISA.

void rms_norm(const float* x, const float* weight, float eps, std::int64_t n, float* out);
void rms_norm_add(const float* x, const float* weight, float eps, std::int64_t n, float* sum);
void layer_norm(const float* x, const float* weight, const float* bias, float eps, std::int64_t n,
                float* out);
void rope(float* head, const float* cos, const float* sin, std::int32_t rotary_dim, RopeStyle style);
void silu_mul(const float* gate, const float* up, std::int64_t n, float* out);
void gelu_tanh_mul(const float* gate, const float* up, std::int64_t n, float* out);
void gelu_erf_mul(const float* gate, const float* up, std::int64_t n, float* out);
void swiglu_oai(const float* gate, const float* up, std::int64_t n, float* out);
void add(const float* a, const float* b, std::int64_t n, float* out);
void scale(const float* x, float factor, std::int64_t n, float* out);
void add_scaled(const float* x, float factor, std::int64_t n, float* sum);
void soft_cap(const float* x, float cap, std::int64_t n, float* out);
bool write_kv(const KvWriteArgs& args);
void convert_cell(const KvConvertArgs& args);
void measure_cell(const CellMeasureArgs& args);
void attention(const AttentionArgs& args);
void attention_merge(const AttentionMergeArgs& args);
void tile_maxima(const float* x, std::int64_t n, float* maxima);
double sum_exp(const float* x, float max, std::int64_t n);
