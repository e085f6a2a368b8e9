// Heads of q and k: RMS norm where there is one, rotary position embedding, and k and v into their cells. A warp has a
// head: those of q first, then the pairs of k and v.
#include "backend/cuda/kernels/launchers.h"
#include "backend/cuda/kernels/row_sums.h"
#include "kv/cells/cell.h"

namespace kvasir::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * simt::kWarpSize;
constexpr int kSlots = kv::kTokensPerBlock;
constexpr float kBeyondHalf = 65520.0f;  // the least that rounds to infinity

// Copies a head to shared memory, normalised.
KVASIR_DEVICE void load_head(const RopeAndStoreArgs& args, const float* from, const float* norm,
                             float* head) {
  const float factor = norm == nullptr ? 1.0f : rms_factor(from, args.norm_eps, args.head_dim);
  for (int i = simt::lane_index(); i < args.head_dim; i += simt::kWarpSize) {
    const float x = simt::load(from + i);
    simt::store(head + i, norm == nullptr ? x : (x * factor) * simt::load(norm + i));
  }
  simt::sync_warp();
}

// A pair (a, b) becomes (a cos - b sin, b cos + a sin), each with one fused multiply-add.
KVASIR_DEVICE void turn_head(const RopeAndStoreArgs& args, std::int64_t row, float* head) {
  const int half = args.rotary_dim / 2;
  const float* cosines = args.cosines + row * args.rotary_dim;
  for (int i = simt::lane_index(); i < half; i += simt::kWarpSize) {
    float* first = head + (args.is_interleaved ? 2 * i : i);
    float* second = args.is_interleaved ? first + 1 : first + half;
    const float a = simt::load(first), b = simt::load(second);
    const float cosine = simt::load(cosines + i), sine = simt::load(cosines + half + i);
    simt::store(first, simt::fma_rn(a, cosine, -(b * sine)));
    simt::store(second, simt::fma_rn(b, cosine, a * sine));
  }
  simt::sync_warp();
}

KVASIR_DEVICE bool is_within(float x, float limit) { return simt::magnitude(x) < limit; }

// Keys lie channel by channel, values token by token.
template <class Number, class Round>
KVASIR_DEVICE bool store_token(const RopeAndStoreArgs& args, const float* key, const float* value,
                               std::byte* cell, int slot, float limit, Round to_number) {
  auto* keys = reinterpret_cast<Number*>(cell);
  Number* values = keys + std::int64_t{args.head_dim} * kSlots;
  bool are_within = true;
  for (int i = simt::lane_index(); i < args.head_dim; i += simt::kWarpSize) {
    const float k = simt::load(key + i), v = simt::load(value + i);
    simt::store(keys + i * kSlots + slot, to_number(k));
    simt::store(values + slot * args.head_dim + i, to_number(v));
    are_within = are_within && is_within(k, limit) && is_within(v, limit);
  }
  return !simt::any_lane(!are_within);
}

KVASIR_DEVICE void store_head(const RopeAndStoreArgs& args, std::int64_t row, int head, const float* key) {
  const float* value = args.v + row * args.v_stride + std::int64_t{head} * args.head_dim;
  const std::int64_t block = simt::load(args.block_of + row);
  const std::uint64_t ref = simt::load(args.refs + block * args.ref_stride + head);
  std::byte* cell = args.cells + ref / kv::KvCellRef::kAlignment * kv::KvCellRef::kAlignment;
  const int slot = simt::load(args.slot_of + row);
  bool are_finite = false;
  if (args.are_halves) {
    are_finite = store_token<std::uint16_t>(args, key, value, cell, slot, kBeyondHalf,
                                            [](float x) { return simt::float_to_half(x); });
  } else {
    are_finite = store_token<float>(args, key, value, cell, slot, simt::infinity(),
                                    [](float x) { return x; });
  }
  if (simt::lane_index() == 0)
    simt::store(args.is_finite + row * args.num_kv_heads + head, static_cast<std::uint8_t>(are_finite));
}

KVASIR_KERNEL(kThreads) void rope_and_store_kernel(RopeAndStoreArgs args) {
  const std::int64_t row = simt::block_index().x;
  const int head = static_cast<int>(simt::block_index().y) * kWarps + simt::warp_index();
  if (head >= args.num_q_heads + args.num_kv_heads) return;  // a whole warp
  float* of_warp = simt::shared<float>(std::int64_t{4} * simt::warp_index() * args.head_dim, args.head_dim);
  if (head < args.num_q_heads) {
    float* q = args.q + row * args.q_stride + std::int64_t{head} * args.head_dim;
    load_head(args, q, args.q_norm, of_warp);
    turn_head(args, row, of_warp);
    for (int i = simt::lane_index(); i < args.head_dim; i += simt::kWarpSize)
      simt::store(q + i, simt::load(of_warp + i));
  } else {
    const int kv_head = head - args.num_q_heads;
    load_head(args, args.k + row * args.k_stride + std::int64_t{kv_head} * args.head_dim, args.k_norm, of_warp);
    turn_head(args, row, of_warp);
    store_head(args, row, kv_head, of_warp);
  }
}

}  // namespace

void rope_and_store(simt::Device& device, const RopeAndStoreArgs& args) {
  const int heads = args.num_q_heads + args.num_kv_heads;
  const simt::Dim grid = {static_cast<std::uint32_t>(args.num_rows),
                          static_cast<std::uint32_t>((heads + kWarps - 1) / kWarps)};
  simt::launch<rope_and_store_kernel>(device, grid, kThreads, std::int64_t{4} * kWarps * args.head_dim, args);
}

}  // namespace kvasir::cuda
