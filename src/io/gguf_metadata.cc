#include "io/gguf_metadata.h"

#include <fmt/format.h>

#include <limits>
#include <map>
#include <string>
#include <utility>

#include "base/printable.h"

namespace kvasir::io {
namespace {

// Value types by their number in the file.
enum class GgufType : std::uint32_t {
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kFloat32,
  kBool,
  kString,
  kArray,
  kUint64,
  kInt64,
  kFloat64,
};
constexpr std::uint32_t kNumGgufTypes = 13;
// Smallest encoding of an element; an array's own header is its element type and count.
constexpr std::uint64_t kMinBytesOf[kNumGgufTypes] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};
constexpr std::uint64_t kMinEntryBytes = 8 + 1 + 4 + 1;  // key length, key, type, value
constexpr std::uint64_t kMaxKeyBytes = 65535;
constexpr std::uint64_t kEntryOverheadBytes = 128;  // a map node with its key

std::unexpected<Error> bad_metadata(std::string problem) {
  return make_error(ErrorKind::kBadFile, "metadata: " + std::move(problem));
}

class MetadataReader {
 public:
  explicit MetadataReader(ByteCursor& cursor) : cursor_(cursor) {}

  Result<Metadata> read(std::uint64_t num_entries) {
    if (num_entries > cursor_.remaining() / kMinEntryBytes) {
      return bad_metadata(fmt::format("{} entries announced, but the {} bytes left hold at most {}",
                                      num_entries, cursor_.remaining(),
                                      cursor_.remaining() / kMinEntryBytes));
    }
    std::map<std::string, MetadataValue, std::less<>> values;
    for (std::uint64_t i = 0; i < num_entries; ++i) {
      KVASIR_TRY(key_, read_string(fmt::format("the key of entry {} of {}", i + 1, num_entries)));
      if (key_.empty()) return bad_metadata(fmt::format("the key of entry {} is empty", i + 1));
      if (key_.size() > kMaxKeyBytes) {
        return bad_metadata(fmt::format("the key of entry {} has {} bytes, the limit is {}", i + 1,
                                        key_.size(), kMaxKeyBytes));
      }
      if (values.contains(key_)) return bad_metadata(fmt::format("key {} appears twice", printable(key_)));
      KVASIR_CHECKED(charge(kEntryOverheadBytes));
      KVASIR_TRY(MetadataValue value, read_value());
      values.emplace(std::move(key_), std::move(value));
    }
    return Metadata(std::move(values));
  }

 private:
  std::unexpected<Error> ends_inside(const std::string& what) const {
    return bad_metadata(fmt::format("the file ends inside {} (at byte {}, {} bytes left)", what,
                                    cursor_.position(), cursor_.remaining()));
  }

  std::string value_name() const { return fmt::format("the value of {}", printable(key_)); }

  // Books memory before it is taken, so that a small file cannot ask for a large allocation.
  Status charge(std::uint64_t num_bytes) {
    if (num_bytes > budget_bytes_) {
      return bad_metadata(fmt::format("{} takes the metadata beyond {} bytes of memory, the limit",
                                      value_name(), kMaxMetadataBytes));
    }
    budget_bytes_ -= num_bytes;
    return {};
  }

  Result<std::string> read_string(const std::string& what) {
    const auto length = cursor_.take<std::uint64_t>();
    if (!length) return ends_inside(what);
    if (*length > cursor_.remaining()) {
      return bad_metadata(
          fmt::format("{} announces {} bytes, but {} are left", what, *length, cursor_.remaining()));
    }
    KVASIR_CHECKED(charge(*length));
    return std::string(*cursor_.take_text(*length));
  }

  Result<GgufType> read_type() {
    const auto type = cursor_.take<std::uint32_t>();
    if (!type) return ends_inside(value_name());
    if (*type >= kNumGgufTypes) {
      return bad_metadata(fmt::format("{} has the unknown type {}, the last known one is {}", value_name(),
                                      *type, kNumGgufTypes - 1));
    }
    return static_cast<GgufType>(*type);
  }

  Result<MetadataValue> read_value() {
    KVASIR_TRY(const GgufType type, read_type());
    switch (type) {
      case GgufType::kUint8:
        return read_number<std::uint8_t, std::int64_t>();
      case GgufType::kInt8:
        return read_number<std::int8_t, std::int64_t>();
      case GgufType::kUint16:
        return read_number<std::uint16_t, std::int64_t>();
      case GgufType::kInt16:
        return read_number<std::int16_t, std::int64_t>();
      case GgufType::kUint32:
        return read_number<std::uint32_t, std::int64_t>();
      case GgufType::kInt32:
        return read_number<std::int32_t, std::int64_t>();
      case GgufType::kUint64:
        return read_number<std::uint64_t, std::uint64_t>();
      case GgufType::kInt64:
        return read_number<std::int64_t, std::int64_t>();
      case GgufType::kFloat32:
        return read_number<float, double>();
      case GgufType::kFloat64:
        return read_number<double, double>();
      case GgufType::kBool:
        return read_bool();
      case GgufType::kArray:
        return read_array();
      case GgufType::kString:
        break;
    }
    return read_string(value_name());
  }

  template <class Stored, class Wide>
  Result<MetadataValue> read_number() {
    const auto value = cursor_.take<Stored>();
    if (!value) return ends_inside(value_name());
    return static_cast<Wide>(*value);
  }

  Result<bool> read_bool() {
    const auto value = cursor_.take<std::uint8_t>();
    if (!value) return ends_inside(value_name());
    return *value != 0;  // some writers have 255 for true
  }

  Result<MetadataValue> read_array() {
    KVASIR_TRY(const GgufType type, read_type());
    const auto count = cursor_.take<std::uint64_t>();
    if (!count) return ends_inside(value_name());
    if (type == GgufType::kArray)
      return bad_metadata(value_name() + " is an array of arrays, which is not supported");
    const std::uint64_t most = cursor_.remaining() / kMinBytesOf[static_cast<std::uint32_t>(type)];
    if (*count > most) {
      return bad_metadata(fmt::format("{} announces {} elements, but the {} bytes left hold at most {}",
                                      value_name(), *count, cursor_.remaining(), most));
    }
    switch (type) {
      case GgufType::kUint8:
        return read_numbers<std::uint8_t, std::int64_t>(*count);
      case GgufType::kInt8:
        return read_numbers<std::int8_t, std::int64_t>(*count);
      case GgufType::kUint16:
        return read_numbers<std::uint16_t, std::int64_t>(*count);
      case GgufType::kInt16:
        return read_numbers<std::int16_t, std::int64_t>(*count);
      case GgufType::kUint32:
        return read_numbers<std::uint32_t, std::int64_t>(*count);
      case GgufType::kInt32:
        return read_numbers<std::int32_t, std::int64_t>(*count);
      case GgufType::kUint64:
        return read_numbers<std::uint64_t, std::int64_t>(*count);
      case GgufType::kInt64:
        return read_numbers<std::int64_t, std::int64_t>(*count);
      case GgufType::kFloat32:
        return read_numbers<float, double>(*count);
      case GgufType::kFloat64:
        return read_numbers<double, double>(*count);
      case GgufType::kBool:
        return read_bools(*count);
      case GgufType::kString:
      case GgufType::kArray:
        break;
    }
    return read_strings(*count);
  }

  // Requires: the cursor holds count * sizeof(Stored) bytes.
  template <class Stored, class Wide>
  Result<MetadataValue> read_numbers(std::uint64_t count) {
    KVASIR_CHECKED(charge(count * sizeof(Wide)));
    std::vector<Wide> numbers;
    numbers.reserve(count);
    for (std::uint64_t i = 0; i < count; ++i) {
      const Stored value = *cursor_.take<Stored>();
      if constexpr (std::is_same_v<Stored, std::uint64_t>) {
        if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
          return bad_metadata(fmt::format("{}: element {} is {}, the limit is {}", value_name(), i, value,
                                          std::numeric_limits<std::int64_t>::max()));
        }
      }
      numbers.push_back(static_cast<Wide>(value));
    }
    return numbers;
  }

  Result<MetadataValue> read_bools(std::uint64_t count) {
    KVASIR_CHECKED(charge(count));
    std::vector<bool> bools;
    bools.reserve(count);
    for (std::uint64_t i = 0; i < count; ++i) {
      KVASIR_TRY(const bool value, read_bool());
      bools.push_back(value);
    }
    return bools;
  }

  Result<MetadataValue> read_strings(std::uint64_t count) {
    KVASIR_CHECKED(charge(count * sizeof(std::string)));
    const std::string what = "an element of " + printable(key_);
    std::vector<std::string> strings;
    strings.reserve(count);
    for (std::uint64_t i = 0; i < count; ++i) {
      KVASIR_TRY(std::string text, read_string(what));
      strings.push_back(std::move(text));
    }
    return strings;
  }

  ByteCursor& cursor_;
  std::string key_;  // of the entry being read
  std::uint64_t budget_bytes_ = kMaxMetadataBytes;
};

}  // namespace

Result<Metadata> read_gguf_metadata(ByteCursor& cursor, std::uint64_t num_entries) {
  return MetadataReader(cursor).read(num_entries);
}

}  // namespace kvasir::io
