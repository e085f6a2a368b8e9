#include "text/hf/post_processors.h"

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/printable.h"

namespace kvasir::text::hf {
namespace {

constexpr int kMaxSteps = 32;

Result<TokenId> checked_id(const JsonView& json, std::int64_t id, const Vocab& vocab) {
  if (id < 0 || id >= vocab.num_tokens()) {
    return json.fail(fmt::format("token {} is outside the vocabulary of {} tokens", id, vocab.num_tokens()));
  }
  return static_cast<TokenId>(id);
}

// ["[SEP]", 102]
Result<TokenId> read_named_token(const JsonView& json, const char* key, const Vocab& vocab) {
  KVASIR_TRY(const JsonView pair, json.at(key));
  KVASIR_TRY(const std::vector<JsonView> elements, pair.elements());
  if (elements.size() != 2) return pair.fail("a token and its id are wanted here");
  KVASIR_TRY(const std::int64_t id, elements[1].integer());
  return checked_id(pair, id, vocab);
}

// BERT's [CLS] a [SEP] b [SEP], RoBERTa's <s> a </s></s> b </s>.
Result<SequenceFrame> read_cls_sep(const JsonView& json, const Vocab& vocab, bool is_roberta) {
  KVASIR_TRY(const TokenId cls, read_named_token(json, "cls", vocab));
  KVASIR_TRY(const TokenId sep, read_named_token(json, "sep", vocab));
  SequenceFrame frame = {.before = {cls}, .after = {sep}};
  frame.pair = {{.token = cls}, {.text_index = 0}, {.token = sep}};
  const std::uint8_t second = is_roberta ? 0 : 1;
  if (is_roberta) frame.pair.push_back({.token = sep});
  frame.pair.push_back({.text_index = 1, .token_type = second});
  frame.pair.push_back({.token = sep, .token_type = second});
  return frame;
}

// The ids behind the name of a special token of a template.
Result<std::vector<TokenId>> template_ids(const JsonView& json, const std::string& name, const Vocab& vocab) {
  KVASIR_TRY(const JsonView known, json.at("special_tokens"));
  KVASIR_TRY(const JsonView token, known.at(name));
  KVASIR_TRY(const JsonView list, token.at("ids"));
  KVASIR_TRY(const std::vector<JsonView> elements, list.elements());
  std::vector<TokenId> ids;
  for (const JsonView& element : elements) {
    KVASIR_TRY(const std::int64_t number, element.integer());
    KVASIR_TRY(const TokenId id, checked_id(element, number, vocab));
    ids.push_back(id);
  }
  return ids;
}

Result<std::vector<FramePart>> read_template(const JsonView& json, const char* key, const Vocab& vocab) {
  std::vector<FramePart> parts;
  const auto list = json.find(key);
  if (!list) return parts;
  KVASIR_TRY(const std::vector<JsonView> elements, list->elements());
  for (const JsonView& element : elements) {
    const auto special = element.find("SpecialToken");
    KVASIR_TRY(const JsonView part, special ? Result<JsonView>(*special) : element.at("Sequence"));
    KVASIR_TRY(const std::string id, part.string_at("id"));
    KVASIR_TRY(const std::int64_t type, part.integer_at("type_id", 0));
    if (type < 0 || type > 255) return part.fail(fmt::format("type_id is {} (0 to 255 are allowed)", type));
    const auto token_type = static_cast<std::uint8_t>(type);
    if (!special) {
      if (id != "A" && id != "B")
        return part.fail(fmt::format("the sequence '{}' is not known", printable(id)));
      parts.push_back({.text_index = id == "A" ? 0 : 1, .token_type = token_type});
      continue;
    }
    KVASIR_TRY(const std::vector<TokenId> ids, template_ids(json, id, vocab));
    for (const TokenId token : ids) parts.push_back({.token = token, .token_type = token_type});
  }
  return parts;
}

Result<SequenceFrame> read_templates(const JsonView& json, const Vocab& vocab) {
  KVASIR_TRY(const std::vector<FramePart> single, read_template(json, "single", vocab));
  SequenceFrame frame;
  int num_texts = 0;
  for (const FramePart& part : single) {
    if (part.token == kNoToken) {
      ++num_texts;
    } else {
      (num_texts == 0 ? frame.before : frame.after).push_back(part.token);
    }
  }
  if (num_texts != 1)
    return json.fail(fmt::format("the template 'single' has {} texts (it needs one)", num_texts));
  KVASIR_TRY(frame.pair, read_template(json, "pair", vocab));
  return frame;
}

// Steps that add nothing leave the frame as it is.
Result<SequenceFrame> read_steps(const JsonView& json, const Vocab& vocab, int depth);

Result<SequenceFrame> read_step(const JsonView& json, const Vocab& vocab, int depth) {
  if (depth > kMaxSteps) return json.fail("post-processors are nested too deep");
  KVASIR_TRY(const std::string type, json.string_at("type"));
  if (type == "TemplateProcessing") return read_templates(json, vocab);
  if (type == "BertProcessing") return read_cls_sep(json, vocab, /*is_roberta=*/false);
  if (type == "RobertaProcessing") return read_cls_sep(json, vocab, /*is_roberta=*/true);
  if (type == "ByteLevel") return SequenceFrame{};  // it only corrects offsets
  if (type == "Sequence") return read_steps(json, vocab, depth);
  return json.fail(fmt::format("the post-processor '{}' is not known", printable(type)));
}

Result<SequenceFrame> read_steps(const JsonView& json, const Vocab& vocab, int depth) {
  KVASIR_TRY(const JsonView list, json.at("processors"));
  KVASIR_TRY(const std::vector<JsonView> elements, list.elements());
  SequenceFrame frame;
  for (const JsonView& element : elements) {
    KVASIR_TRY(SequenceFrame step, read_step(element, vocab, depth + 1));
    const bool adds_nothing = step.before.empty() && step.after.empty() && step.pair.empty();
    if (adds_nothing) continue;
    const bool has_some = !frame.before.empty() || !frame.after.empty() || !frame.pair.empty();
    if (has_some) return element.fail("two post-processors that add tokens: not supported");
    frame = std::move(step);
  }
  return frame;
}

}  // namespace

Result<SequenceFrame> read_post_processor(const JsonView& json, const Vocab& vocab) {
  return read_step(json, vocab, 0);
}

}  // namespace kvasir::text::hf
