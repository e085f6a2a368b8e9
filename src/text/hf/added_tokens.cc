#include "text/hf/added_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <unordered_map>

#include "base/printable.h"

namespace kvasir::text::hf {
namespace {

using IdByText = std::unordered_map<std::string_view, std::int64_t>;

// Ids may leave holes, but a table of them must not need more memory than the file itself.
std::int64_t id_limit(std::size_t num_texts) { return static_cast<std::int64_t>(num_texts) * 8 + 65'536; }

Status check_token_id(const JsonView& root, std::string_view text, std::int64_t id, std::size_t num_texts) {
  if (id >= 0 && id < id_limit(num_texts)) return {};
  return root.fail(fmt::format("token '{}' has the id {} ({} tokens: 0 to {} are allowed)", printable(text),
                               id, num_texts, id_limit(num_texts) - 1));
}

Status set_text(const JsonView& root, VocabData& data, std::int64_t id, const std::string& text,
                TokenType type) {
  const auto index = static_cast<std::size_t>(id);
  if (index >= data.tokens.size()) {
    data.tokens.resize(index + 1);
    data.token_types.resize(index + 1, static_cast<std::int32_t>(TokenType::kUnused));
  }
  if (!data.tokens[index].empty() && data.tokens[index] != text) {
    return root.fail(
        fmt::format("id {} is '{}' and '{}'", id, printable(data.tokens[index]), printable(text)));
  }
  data.tokens[index] = text;
  data.token_types[index] = static_cast<std::int32_t>(text.empty() ? TokenType::kUnused : type);
  return {};
}

}  // namespace

Result<std::vector<AddedToken>> read_added_tokens(const JsonView& root) {
  std::vector<AddedToken> added;
  const auto list = root.find("added_tokens");
  if (!list) return added;
  KVASIR_TRY(const std::vector<JsonView> elements, list->elements());
  for (const JsonView& element : elements) {
    AddedToken& entry = added.emplace_back();
    KVASIR_TRY(const JsonView id, element.at("id"));
    KVASIR_TRY(const std::int64_t number, id.integer());
    KVASIR_CHECKED(check_token_id(element, "", number, std::size_t{1} << 27));
    entry.token.id = static_cast<TokenId>(number);
    KVASIR_TRY(entry.token.text, element.string_at("content"));
    KVASIR_TRY(entry.token.single_word, element.boolean_at("single_word", false));
    KVASIR_TRY(entry.token.strips_left, element.boolean_at("lstrip", false));
    KVASIR_TRY(entry.token.strips_right, element.boolean_at("rstrip", false));
    KVASIR_TRY(entry.token.is_hidden, element.boolean_at("special", false));
    KVASIR_TRY(entry.is_normalized, element.boolean_at("normalized", !entry.token.is_hidden));
  }
  return added;
}

Result<JoinedVocab> join_vocab(const JsonView& root, const ModelJson& model, std::vector<AddedToken>& added) {
  const std::size_t num_texts = model.vocab.size() + added.size();
  JoinedVocab joined;
  joined.data.model = "tokenizer.json";
  IdByText ids;
  for (const auto& [text, id] : model.vocab) {
    KVASIR_CHECKED(check_token_id(root, text, id, num_texts));
    if (const auto [entry, is_new] = ids.emplace(text, id); !is_new) {
      return root.fail(fmt::format("token '{}' has the ids {} and {}", printable(text), entry->second, id));
    }
    KVASIR_CHECKED(set_text(root, joined.data, id, text, TokenType::kNormal));
  }
  joined.is_added.assign(joined.data.tokens.size(), false);
  for (std::size_t id = 0; id < joined.is_added.size(); ++id)
    joined.is_added[id] = joined.data.tokens[id].empty();
  // The library adds none without a text, and such an id stays unused.
  std::erase_if(added, [](const AddedToken& entry) { return entry.token.text.empty(); });
  for (AddedToken& entry : added) {
    if (const auto known = ids.find(entry.token.text); known != ids.end()) {
      entry.token.id = static_cast<TokenId>(known->second);
    }
    KVASIR_CHECKED(check_token_id(root, entry.token.text, entry.token.id, num_texts));
    ids.emplace(entry.token.text, entry.token.id);
    const TokenType type = entry.token.is_hidden ? TokenType::kControl : TokenType::kUserDefined;
    KVASIR_CHECKED(set_text(root, joined.data, entry.token.id, entry.token.text, type));
    joined.is_added.resize(joined.data.tokens.size(), true);
  }
  return joined;
}

}  // namespace kvasir::text::hf
