#include "compress/folder_entries.h"

#include <simdjson.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

#include "text/vocab.h"

namespace kvasir::compress {
namespace {

using io::GgufEntry;

// Names of tokenizer.ggml.pre, the common ones first.
constexpr std::string_view kPreNames[] = {
    "llama-bpe",  "qwen2",      "gpt-2",        "smollm",       "tekken",      "gpt-4o",         "qwen35",     "deepseek-llm",
    "deepseek-coder", "deepseek-v3", "falcon",  "starcoder",    "command-r",   "olmo",           "stablelm2",  "refact",
    "exaone",     "chatglm-bpe", "glm4",        "bloom",        "viking",      "chameleon",      "kimi-k2",    "seed-coder",
    "superbpe",   "jais-2",     "default"};

// What ways to split differ in: contractions, numbers, signs, spaces, line ends, scripts, marks, control tokens' look.
constexpr std::string_view kSample =
    "Hello world, it's I'M we'LL they'Ve 'tis don't. 1234567890 12,345.67 3x3 a1b2c3 0x1F4\n"
    "  two  spaces\tand\t\ttabs \n\n\n   indented();  // code_like-this_one\r\n if (x>=10){return -1;}\n"
    "CamelCaseWords andSNAKE_CASE HTTPServer 2nd 3rd\u00a0nbsp\u2003em e\u0301a\u0300 \u00e9\u00e8\u00fc\u00df \u00d1and\u00fa\n"
    "\u4f60\u597d\uff0c\u4e16\u754c\u3002\u4eca\u5929 3\u6708 \u65e5\u672c\u8a9e\u306e\u30c6\u30ad\u30b9\u30c8 \ud55c\uad6d\uc5b4 \u0440\u0443\u0441\u0441\u043a\u0438\u0439 "
    "\u0627\u0644\u0639\u0631\u0628\u064a\u0629 \u0e44\u0e17\u0e22 \u0928\u092e\u0938\u094d\u0924\u0947 \u05e9\u05dc\u05d5\u05dd\n"
    "!!! ??? ... --- *** ((( ))) [[]] {{}} <<>> @user #tag $100 50% a&b x^2 ~/.config \\n \"quoted\" \u201ccurly\u201d \u2014 \u2026\n"
    "\U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467 \u00bd \u00b2 \u2167 \u0661\u0662\u0663 \u96f6\u4e00 \u2581 \u00a3 \u20ac\n\n trailing   \n ";

std::string_view kind_of(std::string_view key, const io::Metadata& metadata) {
  const io::MetadataValue* value = metadata.find(key);
  const auto* text = value == nullptr ? nullptr : std::get_if<std::string>(value);
  return text == nullptr ? std::string_view() : std::string_view(*text);
}

// Integers are 32 bits wide there, unless they are larger.
std::optional<GgufEntry> entry_of(const std::string& key, const io::MetadataValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return io::bool_entry(key, *flag);
  if (const auto* number = std::get_if<std::int64_t>(&value)) {
    if (*number >= 0 && *number <= std::numeric_limits<std::uint32_t>::max()) return io::uint32_entry(key, static_cast<std::uint32_t>(*number));
    return std::nullopt;
  }
  if (const auto* number = std::get_if<std::uint64_t>(&value)) {
    if (*number <= std::numeric_limits<std::uint32_t>::max()) return io::uint32_entry(key, static_cast<std::uint32_t>(*number));
    return std::nullopt;
  }
  if (const auto* number = std::get_if<double>(&value)) return io::float_entry(key, static_cast<float>(*number));
  if (const auto* text = std::get_if<std::string>(&value)) return io::string_entry(key, *text);
  if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) return io::strings_entry(key, *texts);
  if (const auto* numbers = std::get_if<std::vector<std::int64_t>>(&value)) {
    return io::int32s_entry(key, std::vector<std::int32_t>(numbers->begin(), numbers->end()));
  }
  if (const auto* numbers = std::get_if<std::vector<double>>(&value)) {
    return io::floats_entry(key, std::vector<float>(numbers->begin(), numbers->end()));
  }
  const auto& flags = std::get<std::vector<bool>>(value);
  return io::int32s_entry(key, std::vector<std::int32_t>(flags.begin(), flags.end()));
}

// "a b" for each merge, whichever way the file spells them.
std::vector<std::string> merges_of(const simdjson::dom::element& model) {
  std::vector<std::string> merges;
  simdjson::dom::array array;
  if (model["merges"].get_array().get(array) != simdjson::SUCCESS) return merges;
  for (const simdjson::dom::element merge : array) {
    std::string_view text;
    simdjson::dom::array pair;
    if (merge.get_string().get(text) == simdjson::SUCCESS) {
      merges.emplace_back(text);
    } else if (merge.get_array().get(pair) == simdjson::SUCCESS && pair.size() == 2) {
      std::string_view left, right;
      if (pair.at(0).get_string().get(left) == simdjson::SUCCESS && pair.at(1).get_string().get(right) == simdjson::SUCCESS) {
        merges.push_back(std::string(left) + " " + std::string(right));
      }
    }
  }
  return merges;
}

// What every candidate has: texts, types and special ids of the folder's tokenizer.
text::VocabData common_data(const text::Tokenizer& tokenizer) {
  const text::Vocab& vocab = tokenizer.vocab();
  text::VocabData data;
  for (TokenId id = 0; id < vocab.num_tokens(); ++id) {
    data.tokens.emplace_back(vocab.text(id));
    data.token_types.push_back(static_cast<std::int32_t>(vocab.type(id)));
  }
  data.bos = vocab.bos();
  data.eos = vocab.eos();
  data.unknown = vocab.unknown();
  data.padding = vocab.padding();
  data.add_bos = tokenizer.adds_bos();
  data.add_eos = tokenizer.adds_eos();
  return data;
}

// Whether GGUF's tokenizer with these data gives the same ids.
bool gives_the_same(const text::VocabData& data, const text::Tokenizer& tokenizer) {
  const auto made = text::Tokenizer::create(data);
  if (!made) return false;
  for (std::size_t begin = 0; begin < kSample.size(); begin += 97) {
    // Whole characters: from the next byte that begins one.
    std::size_t from = begin;
    while (from < kSample.size() && (static_cast<unsigned char>(kSample[from]) & 0xc0) == 0x80) ++from;
    if ((*made)->encode(kSample.substr(from)) != tokenizer.encode(kSample.substr(from))) return false;
  }
  return true;
}

std::optional<text::VocabData> matching_bpe(const text::Tokenizer& tokenizer, const simdjson::dom::element& model) {
  text::VocabData data = common_data(tokenizer);
  data.merges = merges_of(model);
  data.model = "gpt2";
  for (const std::string_view pre : kPreNames) {
    data.pre = pre;
    if (gives_the_same(data, tokenizer)) return data;
  }
  // SentencePiece's merges: a piece made earlier has a higher score.
  data.model = "llama";
  data.pre.clear();
  data.scores.assign(data.tokens.size(), -1e6f);
  for (std::size_t rank = 0; rank < data.merges.size(); ++rank) {
    const std::string& merge = data.merges[rank];
    const std::size_t space = merge.find(' ');
    const TokenId id = tokenizer.vocab().find(merge.substr(0, space) + merge.substr(space + 1));
    if (id != kNoToken && data.scores[static_cast<std::size_t>(id)] == -1e6f) data.scores[static_cast<std::size_t>(id)] = -static_cast<float>(rank);
  }
  data.merges.clear();
  for (const bool adds_space : {false, true}) {
    data.add_space_prefix = adds_space;
    if (gives_the_same(data, tokenizer)) return data;
  }
  return std::nullopt;
}

std::optional<text::VocabData> matching(const text::Tokenizer& tokenizer, const std::string& tokenizer_json) {
  simdjson::dom::parser parser;
  simdjson::dom::element model;
  std::string_view type;
  if (parser.parse(tokenizer_json)["model"].get(model) != simdjson::SUCCESS) return std::nullopt;
  if (model["type"].get_string().get(type) != simdjson::SUCCESS) type = "BPE";
  if (type == "BPE") return matching_bpe(tokenizer, model);
  text::VocabData data = common_data(tokenizer);
  if (type == "Unigram") {
    data.model = "t5";
    for (TokenId id = 0; id < tokenizer.vocab().num_tokens(); ++id) data.scores.push_back(tokenizer.vocab().score(id));
    for (const bool adds_space : {true, false}) {
      data.add_space_prefix = adds_space;
      if (gives_the_same(data, tokenizer)) return data;
    }
  }
  return std::nullopt;
}

void add_vocab(const text::VocabData& data, std::vector<GgufEntry>& entries) {
  const std::string prefix = "tokenizer.ggml.";
  const auto add_id = [&](const char* name, TokenId id) {
    if (id != kNoToken) entries.push_back(io::uint32_entry(prefix + name, static_cast<std::uint32_t>(id)));
  };
  entries.push_back(io::string_entry(prefix + "model", data.model));
  if (!data.pre.empty()) entries.push_back(io::string_entry(prefix + "pre", data.pre));
  entries.push_back(io::strings_entry(prefix + "tokens", data.tokens));
  if (!data.scores.empty()) entries.push_back(io::floats_entry(prefix + "scores", data.scores));
  entries.push_back(io::int32s_entry(prefix + "token_type", data.token_types));
  if (!data.merges.empty()) entries.push_back(io::strings_entry(prefix + "merges", data.merges));
  add_id("bos_token_id", data.bos);
  add_id("eos_token_id", data.eos);
  add_id("unknown_token_id", data.unknown);
  add_id("padding_token_id", data.padding);
  entries.push_back(io::bool_entry(prefix + "add_bos_token", data.add_bos.value_or(false)));
  entries.push_back(io::bool_entry(prefix + "add_eos_token", data.add_eos.value_or(false)));
  if (data.add_space_prefix) entries.push_back(io::bool_entry(prefix + "add_space_prefix", *data.add_space_prefix));
}

}  // namespace

Result<std::vector<GgufEntry>> folder_entries(const io::WeightSource& source, const text::Tokenizer* tokenizer,
                                              const std::string& tokenizer_json) {
  std::vector<GgufEntry> entries;
  entries.push_back(io::string_entry("general.architecture", kind_of("general.architecture", source.metadata())));
  for (const auto& [key, value] : source.metadata().values()) {
    if (key == "general.architecture" || key == "tokenizer.num_tokens" || key == "tokenizer.kind") continue;
    if (auto entry = entry_of(key, value)) entries.push_back(*std::move(entry));
  }
  if (tokenizer == nullptr) return entries;
  const auto data = matching(*tokenizer, tokenizer_json);
  if (!data) {
    return make_error(ErrorKind::kUnmet, "the folder's tokenizer splits texts in a way that GGUF has no name for", "IN");
  }
  add_vocab(*data, entries);
  return entries;
}

}  // namespace kvasir::compress
