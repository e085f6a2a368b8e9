// Rows of an embedding table, widened from the bytes of its file (quant/<format>/format.h has their meaning).
#include "backend/cuda/kernels/launchers.h"

namespace kvasir::cuda {
namespace {

constexpr int kThreads = 128;

KVASIR_DEVICE std::uint32_t byte_at(const std::byte* p) {
  return simt::load(reinterpret_cast<const std::uint8_t*>(p));
}
KVASIR_DEVICE int signed_byte_at(const std::byte* p) {
  return simt::load(reinterpret_cast<const std::int8_t*>(p));
}
// Blocks begin at any even address.
KVASIR_DEVICE float half_at(const std::byte* p) {
  return simt::half_to_float(simt::load(reinterpret_cast<const std::uint16_t*>(p)));
}

template <DType dtype>
struct Element;

template <>
struct Element<DType::kF32> {
  KVASIR_DEVICE static float at(const std::byte* row, std::int64_t i) {
    return simt::load(reinterpret_cast<const float*>(row) + i);
  }
};
template <>
struct Element<DType::kF16> {
  KVASIR_DEVICE static float at(const std::byte* row, std::int64_t i) { return half_at(row + 2 * i); }
};
template <>
struct Element<DType::kBF16> {
  KVASIR_DEVICE static float at(const std::byte* row, std::int64_t i) {
    return simt::float_of_bits(std::uint32_t{simt::load(reinterpret_cast<const std::uint16_t*>(row) + i)}
                               << 16);
  }
};
template <>
struct Element<DType::kQ8_0> {
  KVASIR_DEVICE static float at(const std::byte* row, std::int64_t i) {
    const std::byte* block = row + i / 32 * 34;
    return half_at(block) * static_cast<float>(signed_byte_at(block + 2 + i % 32));
  }
};
template <>
struct Element<DType::kQ4_0> {
  KVASIR_DEVICE static float at(const std::byte* row, std::int64_t i) {
    const std::byte* block = row + i / 32 * 18;
    const int code = static_cast<int>(byte_at(block + 2 + i % 16) >> (i % 32 < 16 ? 0 : 4) & 15);
    return half_at(block) * static_cast<float>(code - 8);
  }
};
template <>
struct Element<DType::kQ4_K> {
  KVASIR_DEVICE static float at(const std::byte* row, std::int64_t i) {
    const std::byte* block = row + i / 256 * 144;
    const std::byte* packed = block + 4;
    const int s = static_cast<int>(i % 256 / 32);
    const std::uint32_t sub_scale = s < 4
                                        ? byte_at(packed + s) & 63
                                        : (byte_at(packed + s + 4) & 15) | byte_at(packed + s - 4) >> 6 << 4;
    const std::uint32_t sub_min = s < 4 ? byte_at(packed + s + 4) & 63
                                        : byte_at(packed + s + 4) >> 4 | byte_at(packed + s) >> 6 << 4;
    const float scale = half_at(block) * static_cast<float>(sub_scale),
                minimum = half_at(block + 2) * static_cast<float>(sub_min);
    const std::uint32_t code = byte_at(block + 16 + s / 2 * 32 + i % 32) >> 4 * (s % 2) & 15;
    return scale * static_cast<float>(code) - minimum;
  }
};
template <>
struct Element<DType::kQ6_K> {
  KVASIR_DEVICE static float at(const std::byte* row, std::int64_t i) {
    const std::byte* block = row + i / 256 * 210;
    const int half = static_cast<int>(i % 256 / 128), s = static_cast<int>(i % 128 / 32),
              j = static_cast<int>(i % 32);
    const std::uint32_t low = byte_at(block + half * 64 + s % 2 * 32 + j) >> 4 * (s / 2) & 15;
    const std::uint32_t high = byte_at(block + 128 + half * 32 + j) >> 2 * s & 3;
    const float scale = half_at(block + 208) * static_cast<float>(signed_byte_at(block + 192 + i % 256 / 16));
    return scale * static_cast<float>(static_cast<int>(low | high << 4) - 32);
  }
};

template <DType dtype>
KVASIR_KERNEL(kThreads)
void embed_kernel(EmbedArgs args) {
  const std::int64_t row = simt::block_index().x;
  const std::byte* of_token = args.table + simt::load(args.tokens + row) * args.row_bytes;
  for (std::int64_t i = simt::thread_index(); i < args.width; i += kThreads) {
    float x = Element<dtype>::at(of_token, i) * args.scale;
    if (args.types != nullptr)
      x = x + simt::load(args.types + simt::load(args.type_of + row) * args.width + i);
    if (args.positions != nullptr)
      x = x + simt::load(args.positions + simt::load(args.position_of + row) * args.width + i);
    simt::store(args.x + row * args.width + i, x);
  }
}

template <DType dtype>
bool launch_embed(simt::Device& device, const EmbedArgs& args) {
  simt::launch<embed_kernel<dtype>>(device, {static_cast<std::uint32_t>(args.num_rows)}, kThreads, 0, args);
  return true;
}

}  // namespace

bool embed(simt::Device& device, DType dtype, const EmbedArgs& args) {
  switch (dtype) {
    case DType::kF32:
      return launch_embed<DType::kF32>(device, args);
    case DType::kF16:
      return launch_embed<DType::kF16>(device, args);
    case DType::kBF16:
      return launch_embed<DType::kBF16>(device, args);
    case DType::kQ8_0:
      return launch_embed<DType::kQ8_0>(device, args);
    case DType::kQ4_0:
      return launch_embed<DType::kQ4_0>(device, args);
    case DType::kQ4_K:
      return launch_embed<DType::kQ4_K>(device, args);
    case DType::kQ6_K:
      return launch_embed<DType::kQ6_K>(device, args);
    default:
      return false;
  }
}

}  // namespace kvasir::cuda
