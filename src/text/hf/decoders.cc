#include "text/hf/decoders.h"

#include <utility>

#include "text/byte_alphabet.h"
#include "text/byte_tokens.h"
#include "text/hf/normalizers.h"

namespace kvasir::text::hf {
namespace {

std::string replaced_text(std::string text, std::string_view from, std::string_view to) {
  return replace(find_text(std::string(from)), std::string(to))(std::move(text));
}

// The library's rules for English, in its order.
std::string cleaned_up(std::string text) {
  constexpr std::pair<std::string_view, std::string_view> kRules[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : kRules) text = replaced_text(std::move(text), from, to);
  return text;
}

}  // namespace

Decoder byte_level_decoder() {
  return [](DecodedToken& token) {
    if (auto bytes = decode_byte_alphabet(token.text)) token.text = *std::move(bytes);
  };
}

Decoder metaspace_decoder(std::string mark, bool strips_first) {
  return [mark = std::move(mark), strips_first](DecodedToken& token) {
    token.text = replaced_text(std::move(token.text), mark, strips_first && token.at_text_start ? "" : " ");
  };
}

Decoder wordpiece_decoder(std::string prefix, bool cleanup) {
  return [prefix = std::move(prefix), cleanup](DecodedToken& token) {
    if (!token.at_text_start) {
      token.text = token.text.starts_with(prefix) ? token.text.substr(prefix.size()) : " " + token.text;
    }
    if (cleanup) token.text = cleaned_up(std::move(token.text));
  };
}

Decoder byte_fallback_decoder() {
  return [](DecodedToken& token) {
    if (const auto byte = parse_byte_token(token.text)) token.text = std::string(1, *byte);
  };
}

Decoder fuse_decoder() {
  return [](DecodedToken& token) { token.is_fused = true; };
}

Decoder strip_decoder(std::string content, std::size_t start, std::size_t stop) {
  return [content = std::move(content), start, stop](DecodedToken& token) {
    if (token.is_fused && !token.at_text_start) return;
    for (std::size_t i = 0; i < start && token.text.starts_with(content); ++i)
      token.text.erase(0, content.size());
    if (token.is_fused) return;
    for (std::size_t i = 0; i < stop && token.text.ends_with(content); ++i) {
      token.text.resize(token.text.size() - content.size());
    }
  };
}

Decoder replace_decoder(MatchFinder find, std::string content) {
  return [change = replace(std::move(find), std::move(content))](DecodedToken& token) {
    token.text = change(std::move(token.text));
  };
}

Decoder bpe_decoder(std::string suffix) {
  return [suffix = std::move(suffix)](DecodedToken& token) {
    token.text = replaced_text(std::move(token.text), suffix, " ");
  };
}

Decoder spaced_decoder() {
  return [](DecodedToken& token) {
    if (!token.at_text_start) token.text.insert(0, 1, ' ');
  };
}

Decoder sequence(std::vector<Decoder> steps) {
  return [steps = std::move(steps)](DecodedToken& token) {
    for (const Decoder& step : steps) step(token);
  };
}

}  // namespace kvasir::text::hf
