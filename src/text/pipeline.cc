#include "text/pipeline.h"

#include <string>
#include <utility>

#include "base/check.h"
#include "base/utf8.h"

namespace kvasir::text {

Pipeline::Pipeline(Parts parts) : parts_(std::move(parts)) { CHECK(parts_.model != nullptr); }

void Pipeline::encode(std::string_view text, bool at_text_start, std::vector<TokenId>& ids) const {
  std::string normalized = is_valid_utf8(text) ? std::string(text) : to_valid_utf8(text);
  if (parts_.normalizer) normalized = parts_.normalizer(std::move(normalized));
  if (!parts_.normalized_tokens) return encode_normalized(normalized, at_text_start, ids);
  for (const Fragment& fragment : parts_.normalized_tokens->split(normalized)) {
    if (fragment.token != kNoToken) {
      ids.push_back(fragment.token);
    } else {
      encode_normalized(fragment.text, at_text_start && fragment.text.data() == normalized.data(), ids);
    }
  }
}

void Pipeline::encode_normalized(std::string_view text, bool at_text_start, std::vector<TokenId>& ids) const {
  if (text.empty()) return;
  hf::Pieces pieces = {.text = std::string(text), .pieces = {{0, text.size(), at_text_start}}};
  if (parts_.pre_tokenizer) parts_.pre_tokenizer(pieces);
  for (const hf::Pieces::Piece& piece : pieces.pieces) parts_.model->encode(pieces.view(piece), ids);
}

}  // namespace kvasir::text
