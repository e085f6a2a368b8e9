// Host code calls these: a function for each kernel cuts the work into blocks and launches it. A launcher returns once
// the launch is queued; errors stay in the Device.
//
// The bits are those of the CPU's vector kernels (kernels/table.h), whatever the cut.
#pragma once

#include "backend/cuda/kernels/launch_args.h"
#include "backend/cuda/simt/simt.h"
#include "quant/dtype.h"

namespace kvasir::cuda {

// For at most kMaxMatvecTokens tokens: bound by the bytes of the weights. False for a format without blocks.
bool matvec(simt::Device& device, DType dtype, const MatmulArgs& args);
// For any number of tokens: bound by arithmetic.
void matmul(simt::Device& device, DType dtype, const MatmulArgs& args);
// The two above call these where args.w8a8 is set.
void matvec_w8a8(simt::Device& device, const MatmulArgs& args);
void matmul_w8a8(simt::Device& device, const MatmulArgs& args);

void quantize(simt::Device& device, const QuantizeArgs& args);
void norm(simt::Device& device, const NormArgs& args);
void elementwise(simt::Device& device, const ElementwiseArgs& args);

// False for a format whose rows it does not read: F32, F16, BF16, Q8_0, Q4_0, Q4_K and Q6_K are read.
bool embed(simt::Device& device, DType dtype, const EmbedArgs& args);

void rope_and_store(simt::Device& device, const RopeAndStoreArgs& args);
void attention(simt::Device& device, const AttentionArgs& args);
void attention_merge(simt::Device& device, const AttentionMergeArgs& args);
void tile_maxima(simt::Device& device, const TileMaximaArgs& args);
void gather_rows(simt::Device& device, const GatherRowsArgs& args);
void finite_rows(simt::Device& device, const FiniteRowsArgs& args);
void combine_rows(simt::Device& device, const CombineRowsArgs& args);

}  // namespace kvasir::cuda
