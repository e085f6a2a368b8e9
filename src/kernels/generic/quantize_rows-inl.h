// Quantising a row, and a row in spans, block by block. Included inside an ISA's namespace and target region, after
// BlockInputs, the vectors of a block's inputs, and load_block, largest_magnitude, largest_inlier and quantize_block.
// ref/quantize.cc is the definition.

bool quantize_row(const float* x, std::int64_t k, std::int32_t token, std::int32_t num_tokens,
                  void* quantized) {
  const ActivationRow row = activation_row(quantized, k, token, num_tokens);
  const std::int64_t num_blocks = k / kActivationBlock;
  BlockInputs inputs;
  float sum_of_roots = 0.0f;
  for (std::int64_t b = 0; b < num_blocks; ++b) {
    load_block(x + b * kActivationBlock, inputs);
    const float largest = largest_magnitude(inputs);
    if (!(largest <= kLargestInput)) {
      zero_row(row, num_blocks);
      return false;
    }
    row.block(b).scale = largest;  // until the second pass
    sum_of_roots += fourth_root(largest);
  }
  const float threshold = outlier_threshold(sum_of_roots, num_blocks);
  for (std::int64_t b = 0; b < num_blocks; ++b) {
    load_block(x + b * kActivationBlock, inputs);
    const float largest = row.block(b).scale;
    const float inlier = largest > threshold ? largest_inlier(inputs, threshold) : largest;
    quantize_block(inputs, block_scale(inlier, largest), row, b);
  }
  return true;
}

// NaN and infinity included: their bits are the largest integers.
static float span_max(const float* x, int num_blocks) {
  float largest = 0.0f;
  for (int b = 0; b < num_blocks; ++b) {
    BlockInputs inputs;
    load_block(x + b * kActivationBlock, inputs);
    const float of_block = largest_magnitude(inputs);
    if (!(of_block <= largest)) largest = of_block;
    if (!(largest <= kLargestInput)) break;
  }
  return largest;
}

static void quantize_span(const float* x, std::int64_t begin, int num_blocks, float threshold,
                          const ActivationRow& row) {
  const float largest = span_max(x + begin * kActivationBlock, num_blocks);
  float inlier = 0.0f;
  BlockInputs inputs;
  for (std::int64_t b = begin; b < begin + num_blocks; ++b) {
    load_block(x + b * kActivationBlock, inputs);
    const float of_block = largest_inlier(inputs, threshold);
    if (of_block > inlier) inlier = of_block;
  }
  for (std::int64_t b = begin; b < begin + num_blocks; ++b) {
    load_block(x + b * kActivationBlock, inputs);
    quantize_block(inputs, block_scale(inlier, largest), row, b);
  }
  gather_span_offsets(&row.block(begin), row.width, num_blocks);
}

bool quantize_row_w8a8(const float* x, std::int64_t k, std::int32_t token, std::int32_t num_tokens,
                       void* quantized) {
  constexpr std::int64_t kSpanInputs = kBlocksPerSpan * kActivationBlock;
  const ActivationRow row = activation_row(quantized, k, token, num_tokens);
  float sum_of_roots = 0.0f;
  for (std::int64_t s = 0; s < num_spans(k); ++s) {
    const float largest = span_max(x + s * kSpanInputs, blocks_of_span(k, s));
    if (!(largest <= kLargestInput)) {
      zero_row(row, k / kActivationBlock);
      return false;
    }
    sum_of_roots += fourth_root(largest);
  }
  const float threshold = outlier_threshold(sum_of_roots, num_spans(k));
  for (std::int64_t s = 0; s < num_spans(k); ++s) {
    quantize_span(x, s * kBlocksPerSpan, blocks_of_span(k, s), threshold, row);
  }
  return true;
}
