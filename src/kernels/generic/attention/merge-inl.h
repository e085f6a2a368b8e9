// Merging the chunks of a row. Included inside an ISA's namespace and target region.

static float exp_of(float x) {
  float lanes[16];
  store(lanes, exp(broadcast(x)));
  return lanes[0];
}

// The weight of a chunk, relative to the row's overall maximum. One without a sum, which saw no key, has
// weight 0.
static float chunk_weight(const AttentionMergeArgs& args, std::int64_t index, float row_max) {
  return args.partial_sum[index] == 0.0f ? 0.0f : exp_of(args.partial_max[index] - row_max);
}

// Over the chunks that count, and the row's sink.
static float largest_score(const AttentionMergeArgs& args, std::int64_t row) {
  float largest = args.sinks == nullptr ? -__builtin_inff() : args.sinks[row % args.group_size];
  for (std::int64_t chunk = 0; chunk < args.num_chunks; ++chunk) {
    const std::int64_t index = chunk * args.num_rows + row;
    const float chunk_max = args.partial_max[index];
    if (args.partial_sum[index] != 0.0f && chunk_max > largest) largest = chunk_max;
  }
  return largest;
}

// out += weight * partial over one head, or out = weight * partial when `is_first`.
static void add_chunk(const float* partial, float weight, bool is_first, std::int32_t head_dim, float* out) {
  const F32x16 factor = broadcast(weight);
  for (std::int32_t d = 0; d < head_dim; d += 16) {
    const int lanes = head_dim - d < 16 ? head_dim - d : 16;
    const F32x16 total = is_first ? zero() : load_partial(out + d, lanes);
    store_partial(out + d, fma(factor, load_partial(partial + d, lanes), total), lanes);
  }
}

// out = x / sum over one head, by multiplications, which take a fraction of the time. A row that saw nothing
// has the sum 0 and only zeros.
static void divide_head(const float* x, float sum, std::int32_t head_dim, float* out) {
  scale(x, sum == 0.0f ? 1.0f : 1.0f / sum, head_dim, out);
}

// A lone chunk without a sink has weight 1.
static float merge_row(const AttentionMergeArgs& args, std::int64_t row, float row_max, float* out) {
  if (args.num_chunks == 1 && args.sinks == nullptr) {
    const float sum = args.partial_sum[row];
    divide_head(args.partial_out + row * args.head_dim, sum, args.head_dim, out);
    return sum;
  }
  float sum = 0.0f;
  for (std::int64_t chunk = 0; chunk < args.num_chunks; ++chunk) {
    const std::int64_t index = chunk * args.num_rows + row;
    const float weight = chunk_weight(args, index, row_max);
    sum = __builtin_fmaf(weight, args.partial_sum[index], sum);
    add_chunk(args.partial_out + index * args.head_dim, weight, chunk == 0, args.head_dim, out);
  }
  if (args.sinks != nullptr) sum += exp_of(args.sinks[row % args.group_size] - row_max);
  divide_head(out, sum, args.head_dim, out);
  return sum;
}

void attention_merge(const AttentionMergeArgs& args) {
  for (std::int64_t row = 0; row < args.num_rows; ++row) {
    const float row_max = largest_score(args, row);
    float* out = args.out + (row / args.group_size) * args.out_stride +
                 (row % args.group_size) * args.head_dim;
    const float sum = merge_row(args, row, row_max, out);
    if (args.log_sum_exp != nullptr) args.log_sum_exp[row] = row_max + __builtin_logf(sum);
  }
}
