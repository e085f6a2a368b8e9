#include "grammar/token_vocabulary.h"

#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

#include "kvasir/ids.h"

namespace kvasir::grammar {
namespace {

// Whether a text begins behind a token without text.
bool begins_behind_special(const text::Tokenizer& tokenizer) {
  for (TokenId id = 0; id < tokenizer.vocab().num_tokens(); ++id) {
    if (!tokenizer.vocab().is_special(id)) continue;
    bool at_text_start = false;
    tokenizer.decode_next(id, /*render_special=*/false, at_text_start);
    return at_text_start;
  }
  return false;
}

// The byte that the name of a byte token says.
std::optional<unsigned char> named_byte(std::string_view name) {
  if (name.size() != 6 || !name.starts_with("<0x") || !name.ends_with('>')) return std::nullopt;
  unsigned byte = 0;
  const auto [end, error] = std::from_chars(name.data() + 3, name.data() + 5, byte, 16);
  if (error != std::errc() || end != name.data() + 5) return std::nullopt;
  return static_cast<unsigned char>(byte);
}

bool is_byte_token(std::string_view name, std::string_view text) {
  const auto byte = named_byte(name);
  return byte && text.size() == 1 && static_cast<unsigned char>(text[0]) == *byte;
}

}  // namespace

void leave_out_spelled_bytes(std::span<const std::string_view> names, std::span<std::string_view> texts) {
  std::array<bool, 256> is_spelled = {};
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].size() == 1 && !is_byte_token(names[i], texts[i])) is_spelled[static_cast<unsigned char>(texts[i][0])] = true;
  }
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (is_byte_token(names[i], texts[i]) && is_spelled[static_cast<unsigned char>(texts[i][0])]) texts[i] = {};
  }
}

std::shared_ptr<const Vocabulary> make_vocabulary(const text::Tokenizer& tokenizer, std::size_t atlas_bytes) {
  std::vector<std::string_view> names;
  std::vector<std::string_view> tokens;
  std::vector<std::string_view> first_tokens;
  for (TokenId id = 0; id < tokenizer.vocab().num_tokens(); ++id) {
    names.push_back(tokenizer.vocab().text(id));
    bool at_text_start = false;
    tokens.push_back(tokenizer.decode_next(id, /*render_special=*/false, at_text_start));
    at_text_start = true;
    first_tokens.push_back(tokenizer.decode_next(id, /*render_special=*/false, at_text_start));
  }
  leave_out_spelled_bytes(names, tokens);
  leave_out_spelled_bytes(names, first_tokens);
  return std::make_shared<const Vocabulary>(tokens, first_tokens, begins_behind_special(tokenizer),
                                            atlas_bytes);
}

}  // namespace kvasir::grammar
