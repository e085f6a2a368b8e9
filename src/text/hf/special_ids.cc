#include "text/hf/special_ids.h"

#include <simdjson.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "text/hf/json_view.h"

namespace kvasir::text::hf {
namespace {

// Parses a file and hands its object on; an empty text is no file.
Status with_object(std::string_view text, const char* name,
                   const std::function<Status(const JsonView&)>& read) {
  if (text.empty()) return {};
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  const auto error = parser.parse(text.data(), text.size()).get(root);
  if (error != simdjson::SUCCESS) {
    return make_error(ErrorKind::kBadFile, std::string(name) + ": " + simdjson::error_message(error));
  }
  const JsonView view(root, name);
  if (!view.is_object()) return view.fail("an object is wanted here");
  return read(view);
}

// "<s>" or {"content": "<s>"}
TokenId token_named(const JsonView& config, const char* key, const VocabData& data) {
  auto token = config.find(key);
  if (token && token->is_object()) token = token->find("content");
  if (!token) return kNoToken;
  const auto text = token->string();
  if (!text || text->empty()) return kNoToken;
  const auto found = std::ranges::find(data.tokens, *text);
  return found == data.tokens.end() ? kNoToken : static_cast<TokenId>(found - data.tokens.begin());
}

// A number or a list of them; those outside the vocabulary are left out. Errors: kBadFile: another type.
Result<std::vector<TokenId>> ids_at(const JsonView& config, const char* key, const VocabData& data) {
  std::vector<TokenId> ids;
  const auto member = config.find(key);
  if (!member) return ids;
  std::vector<JsonView> elements = {*member};
  if (auto list = member->elements()) elements = *std::move(list);
  for (const JsonView& element : elements) {
    KVASIR_TRY(const std::int64_t id, element.integer());
    if (id >= 0 && static_cast<std::size_t>(id) < data.tokens.size()) ids.push_back(static_cast<TokenId>(id));
  }
  return ids;
}

void set_if_absent(TokenId& id, const std::vector<TokenId>& ids) {
  if (id == kNoToken && !ids.empty()) id = ids.front();
}

Status read_ids(const JsonView& config, VocabData& data) {
  KVASIR_TRY(const std::vector<TokenId> begins, ids_at(config, "bos_token_id", data));
  KVASIR_TRY(const std::vector<TokenId> padding, ids_at(config, "pad_token_id", data));
  KVASIR_TRY(const std::vector<TokenId> ends, ids_at(config, "eos_token_id", data));
  set_if_absent(data.bos, begins);
  set_if_absent(data.padding, padding);
  set_if_absent(data.eos, ends);
  data.extra_end_of_generation.insert(data.extra_end_of_generation.end(), ends.begin(), ends.end());
  return {};
}

}  // namespace

Status read_special_ids(const SpecialIdFiles& files, VocabData& data) {
  const auto read_names = [&](const JsonView& config) -> Status {
    data.bos = token_named(config, "bos_token", data);
    data.eos = token_named(config, "eos_token", data);
    data.unknown = token_named(config, "unk_token", data);
    data.padding = token_named(config, "pad_token", data);
    data.classification = token_named(config, "cls_token", data);
    data.separator = token_named(config, "sep_token", data);
    if (const auto adds = config.boolean_at("add_bos_token", false)) data.add_bos = *adds;
    if (const auto adds = config.boolean_at("add_eos_token", false)) data.add_eos = *adds;
    return {};
  };
  const auto read_config = [&](const JsonView& config) -> Status {
    KVASIR_CHECKED(read_ids(config, data));
    const auto text_config = config.find("text_config");
    return text_config ? read_ids(*text_config, data) : Status();
  };
  KVASIR_CHECKED(with_object(files.tokenizer_config, "tokenizer_config.json", read_names));
  KVASIR_CHECKED(with_object(files.generation_config, "generation_config.json", read_config));
  return with_object(files.config, "config.json", read_config);
}

}  // namespace kvasir::text::hf
