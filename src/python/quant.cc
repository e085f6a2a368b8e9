#include "python/quant.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/thread_pool.h"
#include "compress/tensor_encoder.h"
#include "python/field.h"
#include "python/python_error.h"
#include "quant/dtype.h"
#include "quant/encode/group_rounding.h"

namespace kvasir::python {
namespace {

using namespace nb::literals;

template <class T, int kRank>
using Array = nb::ndarray<T, nb::ndim<kRank>, nb::c_contig, nb::device::cpu>;

constexpr std::int64_t kMostBits = 8, kMostThreads = 256;

std::vector<std::string_view> type_names() {
  std::vector<std::string_view> names;
  for (const DTypeInfo& info : kDTypeInfos) {
    if (compress::has_encoder(info.dtype)) names.push_back(info.name);
  }
  return names;
}

const DTypeInfo& type_named(const std::string& name) {
  for (const DTypeInfo& info : kDTypeInfos) {
    if (info.name == name && compress::has_encoder(info.dtype)) return info;
  }
  raise_unknown("type", name, type_names());
}

std::int64_t encoded_bytes(const DTypeInfo& info, std::int64_t row_length) {
  if (row_length < 1 || row_length % info.block_elements != 0) {
    raise_usage(fmt::format("array: rows of {} must be a multiple of {} long, got {}", info.name, info.block_elements, row_length),
                "array");
  }
  return row_bytes(info.dtype, row_length);
}

// Bytes of a row of so many numbers.
std::int64_t quant_row_bytes(const std::string& type, std::int64_t row_length) {
  return encoded_bytes(type_named(type), row_length);
}

void check_finite(std::string_view name, const float* x, std::size_t count) {
  const float* bad = std::find_if(x, x + count, [](float value) { return !std::isfinite(value); });
  if (bad != x + count) raise_usage(fmt::format("{}: must be finite, element {} is {}", name, bad - x, *bad), std::string(name));
}

void check_size(std::string_view name, std::size_t size, std::int64_t wanted) {
  if (std::cmp_equal(size, wanted)) return;
  raise_usage(fmt::format("{}: must have {} elements, got {}", name, wanted, size), std::string(name));
}

int threads_of(std::int64_t threads) {
  if (threads < 1 || threads > kMostThreads) {
    raise_usage(fmt::format("threads: must be 1 to {}, got {}", kMostThreads, threads), "threads");
  }
  return static_cast<int>(threads);
}

const float* importance_of(const std::optional<Array<const float, 1>>& importance, std::int64_t row_length) {
  if (!importance) return nullptr;
  const auto count = importance->size();
  check_size("importance", count, row_length);
  check_finite("importance", importance->data(), count);
  const float least = *std::min_element(importance->data(), importance->data() + count);
  if (least < 0.0f) raise_usage(fmt::format("importance: must be 0 or greater, got {}", least), "importance");
  return importance->data();
}

void quant_encode(const Array<const float, 2>& x, const std::string& type, const std::optional<Array<const float, 1>>& importance,
                  const Array<std::uint8_t, 1>& out, std::int64_t threads) {
  const DTypeInfo& info = type_named(type);
  const auto num_rows = static_cast<std::int64_t>(x.shape(0)), length = static_cast<std::int64_t>(x.shape(1));
  const std::int64_t bytes = encoded_bytes(info, length);
  check_finite("array", x.data(), x.size());
  const float* weights = importance_of(importance, length);
  check_size("out", out.size(), num_rows * bytes);
  auto* rows = reinterpret_cast<std::byte*>(out.data());
  const int num_threads = threads_of(threads);
  const nb::gil_scoped_release released;
  ThreadPool(num_threads).parallel_for(num_rows, [&](std::int64_t row) {
    compress::encode_rows(info.dtype, x.data() + row * length, weights, 1, length, rows + row * bytes);
  });
}

void quant_decode(const Array<const std::uint8_t, 1>& data, const std::string& type, const Array<float, 2>& out, std::int64_t threads) {
  const DTypeInfo& info = type_named(type);
  const auto num_rows = static_cast<std::int64_t>(out.shape(0)), length = static_cast<std::int64_t>(out.shape(1));
  const std::int64_t bytes = encoded_bytes(info, length);
  check_size("data", data.size(), num_rows * bytes);
  const int num_threads = threads_of(threads);
  const nb::gil_scoped_release released;
  ThreadPool(num_threads).parallel_for(num_rows, [&](std::int64_t row) {
    info.unpack_row(data.data() + row * bytes, length, out.data() + row * length);
  });
}

// The numbers that the file would stand for, without a file's bytes.
void quant_round_trip(const Array<const float, 2>& x, const std::string& type, const std::optional<Array<const float, 1>>& importance,
                      const Array<float, 2>& out, std::int64_t threads) {
  const DTypeInfo& info = type_named(type);
  const auto num_rows = static_cast<std::int64_t>(x.shape(0)), length = static_cast<std::int64_t>(x.shape(1));
  const std::int64_t bytes = encoded_bytes(info, length);
  check_finite("array", x.data(), x.size());
  const float* weights = importance_of(importance, length);
  check_size("out", out.size(), num_rows * length);
  const int num_threads = threads_of(threads);
  const nb::gil_scoped_release released;
  ThreadPool(num_threads).parallel_for(num_rows, [&](std::int64_t row) {
    thread_local std::vector<std::byte> encoded;
    encoded.resize(static_cast<std::size_t>(bytes));
    compress::encode_rows(info.dtype, x.data() + row * length, weights, 1, length, encoded.data());
    info.unpack_row(encoded.data(), length, out.data() + row * length);
  });
}

void quant_round_groups(const Array<const float, 2>& x, std::int64_t bits, std::int64_t group_size, bool symmetric,
                        const Array<std::int16_t, 1>& codes, const Array<float, 1>& scales, const Array<float, 1>& minima) {
  const auto length = static_cast<std::int64_t>(x.shape(1)), count = static_cast<std::int64_t>(x.size());
  if (bits < 1 || bits > kMostBits) raise_usage(fmt::format("bits: must be 1 to {}, got {}", kMostBits, bits), "bits");
  if (group_size < 1 || length % group_size != 0) {
    raise_usage(fmt::format("group_size: must divide rows of {}, got {}", length, group_size), "group_size");
  }
  check_finite("array", x.data(), x.size());
  check_size("codes", codes.size(), count);
  check_size("scales", scales.size(), count / group_size);
  check_size("minima", minima.size(), count / group_size);
  const nb::gil_scoped_release released;
  const auto round = symmetric ? quant::round_symmetric : quant::round_asymmetric;
  for (std::int64_t group = 0; group < count / group_size; ++group) {
    const std::int64_t begin = group * group_size;
    const quant::GroupScale found = round(x.data() + begin, group_size, static_cast<int>(bits), codes.data() + begin);
    scales.data()[group] = found.scale;
    minima.data()[group] = found.min;
  }
}

}  // namespace

void bind_quant(nb::module_& module) {
  module.def("quant_types", type_names);
  module.def("quant_row_bytes", quant_row_bytes, "type"_a, "row_length"_a);
  module.def("quant_encode", quant_encode, "array"_a, "type"_a, "importance"_a.none(), "out"_a, "threads"_a);
  module.def("quant_decode", quant_decode, "data"_a, "type"_a, "out"_a, "threads"_a);
  module.def("quant_round_trip", quant_round_trip, "array"_a, "type"_a, "importance"_a.none(), "out"_a, "threads"_a);
  module.def("quant_round_groups", quant_round_groups, "array"_a, "bits"_a, "group_size"_a, "symmetric"_a, "codes"_a,
             "scales"_a, "minima"_a);
}

}  // namespace kvasir::python
