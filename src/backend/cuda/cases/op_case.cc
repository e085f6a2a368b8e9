#include "backend/cuda/cases/op_case.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>

namespace kvasir::cuda {
namespace {

constexpr char kMagic[8] = {'k', 'v', 'o', 'p', 's', '0', '0', '1'};

struct Closer {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Closer>;

// Reads or writes the parts of a case in one order.
class Stream {
 public:
  Stream(std::FILE* file, bool writes) : file_(file), writes_(writes) {}

  bool bytes(void* data, std::size_t size) {
    return size == 0 ||
           (writes_ ? std::fwrite(data, 1, size, file_) : std::fread(data, 1, size, file_)) == size;
  }
  template <class Number>
  bool number(Number& value) {
    auto wide = static_cast<std::int64_t>(value);
    if (!bytes(&wide, sizeof wide)) return false;
    value = static_cast<Number>(wide);
    return true;
  }
  template <class Container>
  bool sequence(Container& values) {
    std::size_t size = values.size();
    if (!number(size) || size > kMaxElements) return false;
    values.resize(size);
    return bytes(values.data(), size * sizeof(values[0]));
  }
  bool op_case(OpCase& op) {
    std::size_t size = op.arrays.size();
    if (!sequence(op.op) || !sequence(op.name) || !sequence(op.numbers) || !number(size) || size > kMaxArrays)
      return false;
    op.arrays.resize(size);
    for (CaseArray& array : op.arrays) {
      if (!number(array.role) || !number(array.kind) || !sequence(array.content) || !sequence(array.expected))
        return false;
    }
    return true;
  }

 private:
  static constexpr std::size_t kMaxElements = std::size_t{1} << 30, kMaxArrays = 64;
  std::FILE* file_;
  bool writes_;
};

bool same_float(const std::byte* a, const std::byte* b) {
  float x, y;
  std::memcpy(&x, a, sizeof x);
  std::memcpy(&y, b, sizeof y);
  return std::memcmp(a, b, sizeof x) == 0 || (std::isnan(x) && std::isnan(y));
}

// Elements that differ, and the first of them.
struct Differences {
  std::size_t count = 0, first = 0, size = 0;
};

Differences differences_of(const CaseArray& array, const std::vector<std::byte>& output) {
  const std::size_t width = array.kind == ArrayKind::kFloats ? sizeof(float) : 1;
  Differences result{.size = array.expected.size() / width};
  for (std::size_t i = result.size; i-- > 0;) {
    const std::byte* is = output.data() + i * width;
    const std::byte* should_be = array.expected.data() + i * width;
    if (array.kind == ArrayKind::kFloats ? same_float(is, should_be) : *is == *should_be) continue;
    ++result.count;
    result.first = i;
  }
  return result;
}

}  // namespace

std::string difference(const OpCase& op, const std::vector<std::vector<std::byte>>& outputs) {
  for (std::size_t a = 0, o = 0; a < op.arrays.size(); ++a) {
    const CaseArray& array = op.arrays[a];
    if (array.role == ArrayRole::kInput) continue;
    const std::vector<std::byte>& output = outputs[o++];
    if (output.size() != array.expected.size()) return "array " + std::to_string(a) + " has another size";
    const Differences found = differences_of(array, output);
    if (found.count == 0) continue;
    return std::to_string(found.count) + " of " + std::to_string(found.size) + " differ in array " +
           std::to_string(a) + ", the first is " + std::to_string(found.first);
  }
  return {};
}

bool write_cases(const char* path, std::span<const OpCase> cases) {
  const File file(std::fopen(path, "wb"));
  if (file == nullptr) return false;
  Stream stream(file.get(), true);
  char magic[sizeof kMagic];
  std::memcpy(magic, kMagic, sizeof magic);
  std::size_t count = cases.size();
  if (!stream.bytes(magic, sizeof magic) || !stream.number(count)) return false;
  for (OpCase each : cases) {
    if (!stream.op_case(each)) return false;
  }
  return std::fflush(file.get()) == 0;
}

bool read_cases(const char* path, std::vector<OpCase>& cases) {
  const File file(std::fopen(path, "rb"));
  if (file == nullptr) return false;
  Stream stream(file.get(), false);
  char magic[sizeof kMagic];
  std::size_t count = 0;
  if (!stream.bytes(magic, sizeof magic) || std::memcmp(magic, kMagic, sizeof magic) != 0 ||
      !stream.number(count))
    return false;
  for (std::size_t i = 0; i < count; ++i) {
    if (!stream.op_case(cases.emplace_back())) return false;
  }
  return true;
}

}  // namespace kvasir::cuda
