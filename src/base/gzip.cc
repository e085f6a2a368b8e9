#include "base/gzip.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace kvasir {
namespace {

constexpr std::size_t kMaxCodeBits = 15;

std::unexpected<Error> gzip_fault(std::string_view what) {
  return make_error(ErrorKind::kBadFile, fmt::format("gzip: {}", what));
}

std::uint32_t crc32(std::string_view bytes) {
  static const auto table = [] {
    std::array<std::uint32_t, 256> entries{};
    for (std::uint32_t i = 0; i < entries.size(); ++i) {
      std::uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = (value & 1) != 0 ? 0xEDB88320u ^ value >> 1 : value >> 1;
      entries[i] = value;
    }
    return entries;
  }();
  std::uint32_t crc = ~0u;
  for (const char byte : bytes) crc = table[(crc ^ static_cast<unsigned char>(byte)) & 0xFF] ^ crc >> 8;
  return ~crc;
}

// Bits from the lowest of each byte on. Behind the end come zeros, and is_cut().
class BitReader {
 public:
  explicit BitReader(std::string_view bytes) : bytes_(bytes) {}

  std::uint32_t take(int num_bits) {
    std::uint32_t value = 0;
    for (int i = 0; i < num_bits; ++i) {
      const std::size_t byte = at_ / 8;
      if (byte < bytes_.size()) value |= (static_cast<unsigned char>(bytes_[byte]) >> at_ % 8 & 1u) << i;
      ++at_;
    }
    return value;
  }
  void align() { at_ = (at_ + 7) / 8 * 8; }
  std::size_t byte_position() const { return (at_ + 7) / 8; }
  void skip_bytes(std::size_t count) { at_ += count * 8; }
  bool is_cut() const { return at_ > bytes_.size() * 8; }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;  // in bits
};

// A canonical Huffman code.
class HuffmanCode {
 public:
  // The bits of each symbol's code; 0: it has none. Nothing: more codes than there are.
  static std::optional<HuffmanCode> create(std::span<const std::uint8_t> lengths) {
    HuffmanCode code;
    for (const std::uint8_t length : lengths) ++code.counts_[length];
    code.counts_[0] = 0;
    int left = 1;
    std::array<std::size_t, kMaxCodeBits + 1> begins{};
    for (std::size_t bits = 1; bits <= kMaxCodeBits; ++bits) {
      left = left * 2 - code.counts_[bits];
      if (left < 0) return std::nullopt;
      begins[bits] = begins[bits - 1] + static_cast<std::size_t>(code.counts_[bits - 1]);
    }
    code.symbols_.resize(lengths.size());
    for (std::size_t symbol = 0; symbol < lengths.size(); ++symbol) {
      if (lengths[symbol] != 0) code.symbols_[begins[lengths[symbol]]++] = static_cast<std::uint16_t>(symbol);
    }
    return code;
  }

  // Nothing: no code begins like this.
  std::optional<std::uint32_t> read(BitReader& in) const {
    int code = 0;
    int first = 0;
    std::size_t begin = 0;
    for (std::size_t bits = 1; bits <= kMaxCodeBits; ++bits) {
      code |= static_cast<int>(in.take(1));
      if (code - first < counts_[bits]) return symbols_[begin + static_cast<std::size_t>(code - first)];
      begin += static_cast<std::size_t>(counts_[bits]);
      first = (first + counts_[bits]) * 2;
      code *= 2;
    }
    return std::nullopt;
  }

 private:
  std::array<int, kMaxCodeBits + 1> counts_{};  // of codes, by their bits
  std::vector<std::uint16_t> symbols_;          // in the order of their codes
};

class Inflater {
 public:
  Inflater(BitReader& in, std::string& out, std::size_t max_bytes) : in_(in), out_(out), max_bytes_(max_bytes) {}

  Status run() {
    begin_ = out_.size();
    bool is_last = false;
    while (!is_last) {
      is_last = in_.take(1) != 0;
      KVASIR_CHECKED(read_block(in_.take(2)));
      if (in_.is_cut()) return gzip_fault("the file is cut short");
    }
    return {};
  }

 private:
  Status read_block(std::uint32_t kind) {
    if (kind == 0) return read_stored();
    if (kind == 1) return read_fixed();
    if (kind == 2) return read_dynamic();
    return gzip_fault("a block is of no known kind");
  }

  Status read_stored() {
    in_.align();
    const std::uint32_t size = in_.take(16);
    if ((in_.take(16) ^ size) != 0xFFFF) return gzip_fault("a stored block is broken");
    if (out_.size() + size > max_bytes_) return too_large();
    for (std::uint32_t i = 0; i < size && !in_.is_cut(); ++i) out_ += static_cast<char>(in_.take(8));
    return {};
  }

  Status read_fixed() {
    std::array<std::uint8_t, 288> lengths{};
    std::fill_n(lengths.begin(), 144, 8);
    std::fill_n(lengths.begin() + 144, 112, 9);
    std::fill_n(lengths.begin() + 256, 24, 7);
    std::fill_n(lengths.begin() + 280, 8, 8);
    std::array<std::uint8_t, 30> distances{};
    distances.fill(5);
    return read_codes(*HuffmanCode::create(lengths), *HuffmanCode::create(distances));
  }

  Status read_dynamic() {
    constexpr std::array<std::uint8_t, 19> kOrder = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    const std::size_t num_literals = in_.take(5) + 257;
    const std::size_t num_distances = in_.take(5) + 1;
    const std::size_t num_lengths = in_.take(4) + 4;
    if (num_literals > 286 || num_distances > 30) return gzip_fault("a block has too many codes");
    std::array<std::uint8_t, 19> code_lengths{};
    for (std::size_t i = 0; i < num_lengths; ++i) code_lengths[kOrder[i]] = static_cast<std::uint8_t>(in_.take(3));
    const auto code = HuffmanCode::create(code_lengths);
    if (!code) return gzip_fault("a block's codes are broken");
    std::vector<std::uint8_t> lengths;
    while (lengths.size() < num_literals + num_distances && !in_.is_cut()) {
      const auto symbol = code->read(in_);
      if (!symbol) return gzip_fault("a block's codes are broken");
      if (*symbol == 16 && lengths.empty()) return gzip_fault("a block's codes are broken");
      const std::uint8_t value = *symbol < 16 ? static_cast<std::uint8_t>(*symbol) : *symbol == 16 ? lengths.back() : 0;
      const std::uint32_t repeat = *symbol < 16    ? 1
                                   : *symbol == 16 ? 3 + in_.take(2)
                                   : *symbol == 17 ? 3 + in_.take(3)
                                                   : 11 + in_.take(7);
      lengths.insert(lengths.end(), repeat, value);
    }
    if (lengths.size() != num_literals + num_distances) return gzip_fault("a block's codes are broken");
    const auto literals = HuffmanCode::create(std::span(lengths).first(num_literals));
    const auto distances = HuffmanCode::create(std::span(lengths).subspan(num_literals));
    if (!literals || !distances) return gzip_fault("a block's codes are broken");
    return read_codes(*literals, *distances);
  }

  Status read_codes(const HuffmanCode& literals, const HuffmanCode& distances) {
    constexpr std::array<std::uint16_t, 29> kLengths = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                                        31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
    constexpr std::array<std::uint16_t, 30> kDistances = {1,   2,   3,   4,   5,   7,    9,    13,   17,   25,
                                                          33,  49,  65,  97,  129, 193,  257,  385,  513,  769,
                                                          1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
    while (!in_.is_cut()) {
      const auto symbol = literals.read(in_);
      if (!symbol || *symbol >= 257 + kLengths.size()) return gzip_fault("a code is not known");
      if (*symbol == 256) return {};
      if (*symbol < 256) {
        if (out_.size() >= max_bytes_) return too_large();
        out_ += static_cast<char>(*symbol);
        continue;
      }
      const std::size_t place = *symbol - 257;
      const int extra = place < 8 || place == 28 ? 0 : static_cast<int>(place / 4 - 1);
      const std::size_t length = kLengths[place] + in_.take(extra);
      const auto code = distances.read(in_);
      if (!code || *code >= kDistances.size()) return gzip_fault("a distance is not known");
      const std::size_t distance = kDistances[*code] + in_.take(*code < 4 ? 0 : static_cast<int>(*code / 2 - 1));
      if (distance > out_.size() - begin_) return gzip_fault("a distance leads before the beginning");
      if (out_.size() + length > max_bytes_) return too_large();
      for (std::size_t i = 0; i < length; ++i) out_ += out_[out_.size() - distance];
    }
    return {};
  }

  std::unexpected<Error> too_large() const {
    return gzip_fault(fmt::format("the contents are larger than {} bytes", max_bytes_));
  }

  BitReader& in_;
  std::string& out_;
  std::size_t max_bytes_;
  std::size_t begin_ = 0;  // of this member's contents
};

// Goes on behind a member's header.
Status skip_header(std::string_view bytes, BitReader& in) {
  const std::size_t begin = in.byte_position();
  if (bytes.size() - begin < 18 || !is_gzip(bytes.substr(begin)) || bytes[begin + 2] != 8) {
    return gzip_fault("the header is broken");
  }
  const auto flags = static_cast<unsigned char>(bytes[begin + 3]);
  std::size_t at = begin + 10;
  const auto byte = [&](std::size_t i) {
    return i < bytes.size() ? static_cast<std::size_t>(static_cast<unsigned char>(bytes[i])) : 0;
  };
  if ((flags & 4) != 0) at += 2 + byte(at) + 256 * byte(at + 1);
  for (const int text : {8, 16}) {  // a name, a comment
    if ((flags & text) == 0) continue;
    const std::size_t end = bytes.find('\0', std::min(at, bytes.size()));
    if (end == std::string_view::npos) return gzip_fault("the header is broken");
    at = end + 1;
  }
  if ((flags & 2) != 0) at += 2;
  in.skip_bytes(at - begin);
  return in.is_cut() ? gzip_fault("the file is cut short") : Status{};
}

}  // namespace

Result<std::string> gunzip(std::string_view bytes, std::size_t max_bytes) {
  std::string contents;
  BitReader in(bytes);
  do {
    KVASIR_CHECKED(skip_header(bytes, in));
    const std::size_t begin = contents.size();
    KVASIR_CHECKED(Inflater(in, contents, max_bytes).run());
    in.align();
    const std::uint32_t checksum = in.take(32);
    const std::uint32_t size = in.take(32);
    if (in.is_cut()) return gzip_fault("the file is cut short");
    const std::string_view member = std::string_view(contents).substr(begin);
    if (checksum != crc32(member) || size != static_cast<std::uint32_t>(member.size())) {
      return gzip_fault("the checksum is wrong");
    }
  } while (in.byte_position() < bytes.size());
  return contents;
}

}  // namespace kvasir
