#include "eval/windows.h"

#include <fmt/format.h>

#include <algorithm>

namespace kvasir::eval {

Result<std::vector<std::vector<TokenId>>> cut_windows(const text::Tokenizer& tokenizer, std::string_view text,
                                                      std::int32_t ctx_tokens, std::int32_t max_windows) {
  return cut_windows(tokenizer, tokenizer.encode(text, {.parse_special = false, .add_special = false}), ctx_tokens, max_windows);
}

Result<std::vector<std::vector<TokenId>>> cut_windows(const text::Tokenizer& tokenizer, std::span<const TokenId> ids,
                                                      std::int32_t ctx_tokens, std::int32_t max_windows) {
  const auto ctx = static_cast<std::size_t>(ctx_tokens);
  std::size_t num_windows = ids.size() / ctx;
  if (max_windows > 0) num_windows = std::min(num_windows, static_cast<std::size_t>(max_windows));
  if (num_windows == 0) {
    return make_error(ErrorKind::kUnmet,
                      fmt::format("text: a window takes {} tokens, the text has {}", ctx_tokens, ids.size()));
  }
  std::vector<std::vector<TokenId>> windows(num_windows);
  for (std::size_t i = 0; i < num_windows; ++i) {
    const auto begin = ids.begin() + static_cast<std::ptrdiff_t>(i * ctx);
    windows[i].assign(begin, begin + ctx_tokens);
    if (tokenizer.adds_bos()) windows[i][0] = tokenizer.vocab().bos();
  }
  return windows;
}

}  // namespace kvasir::eval
