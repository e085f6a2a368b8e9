#include "text/byte_tokens.h"

#include <fmt/format.h>

#include <charconv>
#include <cstddef>
#include <system_error>

namespace kvasir::text {

std::optional<char> parse_byte_token(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text.back() != '>') return std::nullopt;
  unsigned byte = 0;
  const auto [end, error] = std::from_chars(text.data() + 3, text.data() + 5, byte, 16);
  if (error != std::errc{} || end != text.data() + 5) return std::nullopt;
  return static_cast<char>(byte);
}

std::vector<TokenId> find_byte_tokens(const Vocab& vocab) {
  std::vector<TokenId> tokens(256);
  for (std::size_t byte = 0; byte < tokens.size(); ++byte)
    tokens[byte] = vocab.find(fmt::format("<0x{:02X}>", byte));
  return tokens;
}

bool append_byte_tokens(const std::vector<TokenId>& byte_tokens, std::string_view bytes,
                        std::vector<TokenId>& ids) {
  if (byte_tokens.empty()) return false;
  const std::size_t size = ids.size();
  for (const char byte : bytes) {
    const TokenId id = byte_tokens[static_cast<unsigned char>(byte)];
    if (id == kNoToken) {
      ids.resize(size);
      return false;
    }
    ids.push_back(id);
  }
  return true;
}

}  // namespace kvasir::text
