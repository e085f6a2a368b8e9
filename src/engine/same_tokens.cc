#include "engine/same_tokens.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/printable.h"

namespace kvasir {

Status check_same_tokens(std::string_view name, const text::Tokenizer* own, const text::Tokenizer* model) {
  if (own == nullptr || model == nullptr) return {};
  for (TokenId id = 0; id < std::min(own->vocab().num_tokens(), model->vocab().num_tokens()); ++id) {
    const auto &here = own->vocab().text(id), &there = model->vocab().text(id);
    if (here == there) continue;
    return make_error(ErrorKind::kUsage, fmt::format("{}: its tokens are not the model's: token {} is \"{}\" there and \"{}\" in the model", name, id,
                                                     printable_line(here), printable_line(there)));
  }
  return {};
}

}  // namespace kvasir
