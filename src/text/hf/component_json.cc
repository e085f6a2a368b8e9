#include "text/hf/component_json.h"

#include <fmt/format.h>

#include <optional>
#include <span>
#include <utility>

#include "base/printable.h"
#include "text/hf/base64.h"
#include "text/hf/normalizer_growth.h"

namespace kvasir::text::hf {
namespace {

constexpr int kMaxNesting = 32;

template <class Component>
using Reader = Result<Component> (*)(const JsonView& json, int depth);

template <class Component>
struct NamedReader {
  std::string_view type;
  Reader<Component> read;
};

template <class Component>
Result<Component> read_named(const JsonView& json, int depth, std::span<const NamedReader<Component>> readers,
                             std::string_view what) {
  if (depth > kMaxNesting)
    return json.fail(fmt::format("{}s are nested more than {} deep", what, kMaxNesting));
  KVASIR_TRY(const std::string type, json.string_at("type"));
  for (const NamedReader<Component>& reader : readers) {
    if (reader.type == type) return reader.read(json, depth);
  }
  return json.fail(fmt::format("the {} '{}' is not known", what, printable(type)));
}

// {"String": "a"} or {"Regex": "a+"}; older files have a string alone.
Result<MatchFinder> read_pattern(const JsonView& json) {
  if (json.is_string()) {
    KVASIR_TRY(const std::string text, json.string());
    if (text.empty()) return json.fail("an empty pattern");
    return find_text(text);
  }
  if (const auto regex = json.find("Regex")) {
    KVASIR_TRY(const std::string text, regex->string());
    auto find = find_pattern(text);
    if (!find) return fail_at(*regex, find.error());
    return find;
  }
  KVASIR_TRY(const std::string text, json.string_at("String"));
  if (text.empty()) return json.fail("an empty pattern");
  return find_text(text);
}

// --- normalizers ---

Result<Normalizer> read_normalizer_at(const JsonView& json, int depth);

template <NormalForm kForm>
Result<Normalizer> read_form(const JsonView&, int) {
  return normal_form(kForm);
}
template <Normalizer (*kMake)()>
Result<Normalizer> read_plain(const JsonView&, int) {
  return kMake();
}

Result<Normalizer> read_strip(const JsonView& json, int) {
  KVASIR_TRY(const bool left, json.boolean_at("strip_left", true));
  KVASIR_TRY(const bool right, json.boolean_at("strip_right", true));
  return strip(left, right);
}

Result<Normalizer> read_replace(const JsonView& json, int) {
  KVASIR_TRY(const JsonView pattern, json.at("pattern"));
  KVASIR_TRY(MatchFinder find, read_pattern(pattern));
  KVASIR_TRY(std::string content, json.string_at("content"));
  return replace(std::move(find), std::move(content));
}

Result<Normalizer> read_prepend(const JsonView& json, int) {
  KVASIR_TRY(std::string prefix, json.string_at("prepend"));
  return prepend(std::move(prefix));
}

Result<Normalizer> read_precompiled(const JsonView& json, int) {
  const auto member = json.find("precompiled_charsmap");
  if (!member) return sequence(std::vector<Normalizer>{});
  KVASIR_TRY(const std::string text, member->string());
  const auto bytes = decode_base64(text);
  if (!bytes) return member->fail("this is not base64");
  if (bytes->empty()) return sequence(std::vector<Normalizer>{});
  auto map = Charsmap::parse(*bytes);
  if (!map) return fail_at(*member, map.error());
  return precompiled(*std::move(map));
}

Result<Normalizer> read_bert(const JsonView& json, int) {
  BertNormalizerOptions options;
  KVASIR_TRY(options.clean_text, json.boolean_at("clean_text", true));
  KVASIR_TRY(options.separate_chinese, json.boolean_at("handle_chinese_chars", true));
  KVASIR_TRY(options.lowercase, json.boolean_at("lowercase", true));
  if (const auto strips = json.find("strip_accents")) {
    KVASIR_TRY(options.strip_accents, strips->boolean());
  }
  return bert_normalizer(options);
}

Result<Normalizer> read_normalizers(const JsonView& json, int depth) {
  KVASIR_TRY(const JsonView list, json.at("normalizers"));
  KVASIR_TRY(const std::vector<JsonView> elements, list.elements());
  std::vector<Normalizer> steps;
  for (const JsonView& element : elements) {
    KVASIR_TRY(Normalizer step, read_normalizer_at(element, depth + 1));
    steps.push_back(std::move(step));
  }
  return sequence(std::move(steps));
}

constexpr NamedReader<Normalizer> kNormalizers[] = {
    {"NFC", read_form<NormalForm::kNfc>},
    {"NFD", read_form<NormalForm::kNfd>},
    {"NFKC", read_form<NormalForm::kNfkc>},
    {"NFKD", read_form<NormalForm::kNfkd>},
    {"Lowercase", read_plain<lowercase>},
    {"StripAccents", read_plain<strip_accents>},
    {"Nmt", read_plain<nmt>},
    {"ByteLevel", read_plain<byte_level_normalizer>},
    {"Strip", read_strip},
    {"Replace", read_replace},
    {"Prepend", read_prepend},
    {"Precompiled", read_precompiled},
    {"BertNormalizer", read_bert},
    {"Sequence", read_normalizers},
};

Result<Normalizer> read_normalizer_at(const JsonView& json, int depth) {
  return read_named<Normalizer>(json, depth, kNormalizers, "normalizer");
}

// --- pre-tokenizers ---

Result<PreTokenizer> read_pre_tokenizer_at(const JsonView& json, int depth);

template <PreTokenizer (*kMake)()>
Result<PreTokenizer> read_plain_pre(const JsonView&, int) {
  return kMake();
}

Result<SplitBehavior> read_behavior(const JsonView& json) {
  constexpr std::pair<std::string_view, SplitBehavior> kNames[] = {
      {"Isolated", SplitBehavior::kIsolated},
      {"Removed", SplitBehavior::kRemoved},
      {"MergedWithPrevious", SplitBehavior::kMergedWithPrevious},
      {"MergedWithNext", SplitBehavior::kMergedWithNext},
      {"Contiguous", SplitBehavior::kContiguous},
  };
  KVASIR_TRY(const std::string name, json.string_at("behavior", "Isolated"));
  for (const auto& [known, behavior] : kNames) {
    if (known == name) return behavior;
  }
  return json.fail(fmt::format("the behavior '{}' is not known", printable(name)));
}

Result<PreTokenizer> read_split(const JsonView& json, int) {
  KVASIR_TRY(const JsonView pattern, json.at("pattern"));
  KVASIR_TRY(MatchFinder find, read_pattern(pattern));
  KVASIR_TRY(const SplitBehavior behavior, read_behavior(json));
  KVASIR_TRY(const bool invert, json.boolean_at("invert", false));
  return split(std::move(find), behavior, invert);
}

Result<PreTokenizer> read_byte_level(const JsonView& json, int) {
  KVASIR_TRY(const bool add_prefix_space, json.boolean_at("add_prefix_space", true));
  KVASIR_TRY(const bool use_regex, json.boolean_at("use_regex", true));
  return byte_level(add_prefix_space, use_regex);
}

// prepend_scheme alone decides; add_prefix_space is what files said before there was one.
Result<PrependScheme> read_scheme(const JsonView& json) {
  KVASIR_TRY(const bool adds_space, json.boolean_at("add_prefix_space", true));
  KVASIR_TRY(const std::string name, json.string_at("prepend_scheme", adds_space ? "always" : "never"));
  if (name == "always") return PrependScheme::kAlways;
  if (name == "first") return PrependScheme::kFirst;
  if (name == "never") return PrependScheme::kNever;
  return json.fail(fmt::format("the prepend_scheme '{}' is not known", printable(name)));
}

Result<PreTokenizer> read_metaspace(const JsonView& json, int) {
  KVASIR_TRY(std::string mark, json.string_at("replacement", "\u2581"));
  if (mark.empty()) return json.fail("an empty replacement");
  KVASIR_TRY(const PrependScheme scheme, read_scheme(json));
  KVASIR_TRY(const bool splits, json.boolean_at("split", true));
  return metaspace(std::move(mark), scheme, splits);
}

Result<PreTokenizer> read_digits(const JsonView& json, int) {
  KVASIR_TRY(const bool individually, json.boolean_at("individual_digits", false));
  return digits(individually);
}

Result<PreTokenizer> read_punctuation(const JsonView& json, int) {
  KVASIR_TRY(const SplitBehavior behavior, read_behavior(json));
  return punctuation(behavior);
}

Result<PreTokenizer> read_delimiter(const JsonView& json, int) {
  KVASIR_TRY(const std::string delimiter, json.string_at("delimiter"));
  if (delimiter.empty()) return json.fail("an empty delimiter");
  return split(find_text(delimiter), SplitBehavior::kRemoved);
}

Result<PreTokenizer> read_fixed_length(const JsonView& json, int) {
  KVASIR_TRY(const std::int64_t length, json.integer_at("length", 5));
  if (length < 1) return json.fail(fmt::format("a length of {} (1 or more is allowed)", length));
  return fixed_length(static_cast<std::size_t>(length));
}

Result<PreTokenizer> read_pre_tokenizers(const JsonView& json, int depth) {
  KVASIR_TRY(const JsonView list, json.at("pretokenizers"));
  KVASIR_TRY(const std::vector<JsonView> elements, list.elements());
  std::vector<PreTokenizer> steps;
  for (const JsonView& element : elements) {
    KVASIR_TRY(PreTokenizer step, read_pre_tokenizer_at(element, depth + 1));
    steps.push_back(std::move(step));
  }
  return sequence(std::move(steps));
}

constexpr NamedReader<PreTokenizer> kPreTokenizers[] = {
    {"ByteLevel", read_byte_level},
    {"Metaspace", read_metaspace},
    {"Split", read_split},
    {"Whitespace", read_plain_pre<words_and_symbols>},
    {"WhitespaceSplit", read_plain_pre<whitespace_split>},
    {"Digits", read_digits},
    {"Punctuation", read_punctuation},
    {"BertPreTokenizer", read_plain_pre<bert_pre_tokenizer>},
    {"CharDelimiterSplit", read_delimiter},
    {"UnicodeScripts", read_plain_pre<unicode_scripts>},
    {"FixedLength", read_fixed_length},
    {"Sequence", read_pre_tokenizers},
};

Result<PreTokenizer> read_pre_tokenizer_at(const JsonView& json, int depth) {
  return read_named<PreTokenizer>(json, depth, kPreTokenizers, "pre-tokenizer");
}

// --- decoders ---

Result<Decoder> read_decoder_at(const JsonView& json, int depth);

template <Decoder (*kMake)()>
Result<Decoder> read_plain_decoder(const JsonView&, int) {
  return kMake();
}

Result<Decoder> read_metaspace_decoder(const JsonView& json, int) {
  KVASIR_TRY(std::string mark, json.string_at("replacement", "\u2581"));
  if (mark.empty()) return json.fail("an empty replacement");
  KVASIR_TRY(const PrependScheme scheme, read_scheme(json));
  return metaspace_decoder(std::move(mark), scheme != PrependScheme::kNever);
}

Result<Decoder> read_wordpiece_decoder(const JsonView& json, int) {
  KVASIR_TRY(std::string prefix, json.string_at("prefix", "##"));
  KVASIR_TRY(const bool cleanup, json.boolean_at("cleanup", true));
  return wordpiece_decoder(std::move(prefix), cleanup);
}

Result<Decoder> read_strip_decoder(const JsonView& json, int) {
  KVASIR_TRY(std::string content, json.string_at("content", " "));
  KVASIR_TRY(const std::int64_t start, json.integer_at("start", 0));
  KVASIR_TRY(const std::int64_t stop, json.integer_at("stop", 0));
  if (content.empty() || start < 0 || stop < 0) return json.fail("an empty content, or a count below 0");
  return strip_decoder(std::move(content), static_cast<std::size_t>(start), static_cast<std::size_t>(stop));
}

Result<Decoder> read_replace_decoder(const JsonView& json, int) {
  KVASIR_TRY(const JsonView pattern, json.at("pattern"));
  KVASIR_TRY(MatchFinder find, read_pattern(pattern));
  KVASIR_TRY(std::string content, json.string_at("content"));
  return replace_decoder(std::move(find), std::move(content));
}

Result<Decoder> read_bpe_decoder(const JsonView& json, int) {
  KVASIR_TRY(std::string suffix, json.string_at("suffix", "</w>"));
  if (suffix.empty()) return json.fail("an empty suffix");
  return bpe_decoder(std::move(suffix));
}

std::string type_of(const JsonView& json) { return json.string_at("type").value_or(std::string()); }

// Tokens are decoded one by one, so of the whole text only the first one's beginning can be stripped.
Status check_behind_fuse(const JsonView& json) {
  if (type_of(json) != "Strip") return {};
  KVASIR_TRY(const std::int64_t start, json.integer_at("start", 0));
  KVASIR_TRY(const std::int64_t stop, json.integer_at("stop", 0));
  if (start <= 1 && stop == 0) return {};
  return json.fail(fmt::format("Strip behind Fuse has start {} and stop {}, at most 1 and 0 are read", start, stop));
}

Result<Decoder> read_decoders(const JsonView& json, int depth) {
  KVASIR_TRY(const JsonView list, json.at("decoders"));
  KVASIR_TRY(const std::vector<JsonView> elements, list.elements());
  std::vector<Decoder> steps;
  bool is_fused = false;
  for (const JsonView& element : elements) {
    if (is_fused) KVASIR_CHECKED(check_behind_fuse(element));
    KVASIR_TRY(Decoder step, read_decoder_at(element, depth + 1));
    steps.push_back(std::move(step));
    is_fused = is_fused || type_of(element) == "Fuse";
  }
  return sequence(std::move(steps));
}

constexpr NamedReader<Decoder> kDecoders[] = {
    {"ByteLevel", read_plain_decoder<byte_level_decoder>},
    {"Metaspace", read_metaspace_decoder},
    {"WordPiece", read_wordpiece_decoder},
    {"ByteFallback", read_plain_decoder<byte_fallback_decoder>},
    {"Fuse", read_plain_decoder<fuse_decoder>},
    {"Strip", read_strip_decoder},
    {"Replace", read_replace_decoder},
    {"BPEDecoder", read_bpe_decoder},
    {"Sequence", read_decoders},
};

Result<Decoder> read_decoder_at(const JsonView& json, int depth) {
  return read_named<Decoder>(json, depth, kDecoders, "decoder");
}

}  // namespace

Result<Normalizer> read_normalizer(const JsonView& json) {
  KVASIR_TRY(Normalizer normalizer, read_normalizer_at(json, 0));
  KVASIR_CHECKED(check_normalizer_growth(json));
  return normalizer;
}
Result<PreTokenizer> read_pre_tokenizer(const JsonView& json) { return read_pre_tokenizer_at(json, 0); }
Result<Decoder> read_decoder(const JsonView& json) { return read_decoder_at(json, 0); }

}  // namespace kvasir::text::hf
