#include "text/hf/tokenizer_json.h"

#include <gtest/gtest.h>
#include <simdjson.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/utf8.h"

namespace kvasir::text::tokenizer_json_test {
namespace {

using Ids = std::vector<TokenId>;

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Result<std::unique_ptr<Tokenizer>> load(std::string_view json) {
  return load_tokenizer_json({.tokenizer_json = json});
}

std::string error_of(std::string_view json) {
  const auto tokenizer = load(json);
  if (tokenizer) return "no error";
  EXPECT_EQ(tokenizer.error().kind, ErrorKind::kBadFile);
  return tokenizer.error().message;
}

// The first difference, with a little of the text around it.
std::string first_difference(const Ids& ours, const Ids& theirs, const Tokenizer& tokenizer) {
  std::size_t at = 0;
  while (at < ours.size() && at < theirs.size() && ours[at] == theirs[at]) ++at;
  const auto show = [&](const Ids& ids) {
    std::string shown;
    for (std::size_t i = at < 3 ? 0 : at - 3; i < ids.size() && i < at + 5; ++i) {
      shown += "|" + std::string(tokenizer.vocab().contains(ids[i]) ? tokenizer.vocab().text(ids[i]) : "?");
    }
    return shown;
  };
  return "token " + std::to_string(at) + ": ours " + show(ours) + " theirs " + show(theirs);
}

std::size_t common_prefix(std::string_view a, std::string_view b) {
  std::size_t at = 0;
  while (at < a.size() && at < b.size() && a[at] == b[at]) ++at;
  return at;
}

std::string_view around(std::string_view text, std::size_t at) {
  const std::size_t begin = at < 40 ? 0 : at - 40;
  return text.substr(begin, 80);
}

// The cases of one tokenizer, made by the library (scripts/make_tokenizer_json_cases.py).
void check_cases(const std::filesystem::path& path) {
  const std::string json = read_file(path);
  const auto tokenizer = load(json);
  ASSERT_TRUE(tokenizer.has_value()) << path << ": " << tokenizer.error().message;
  std::filesystem::path cases = path;
  simdjson::dom::parser parser;
  const std::string lines = read_file(cases.replace_extension(".jsonl"));
  std::size_t num_cases = 0;
  for (std::size_t begin = 0; begin < lines.size(); ++num_cases) {
    const std::size_t end = lines.find('\n', begin);
    const simdjson::dom::element line = parser.parse(lines.data() + begin, end - begin);
    begin = end + 1;
    Ids expected;
    for (const std::int64_t id : line["ids"].get_array()) expected.push_back(static_cast<TokenId>(id));
    const std::string_view text = line["text"].get_string().value();
    const Ids ids = (*tokenizer)->encode(text, {.parse_special = true});
    EXPECT_TRUE(ids == expected) << path.filename() << ", '" << text.substr(0, 200)
                                 << "': " << first_difference(ids, expected, **tokenizer);
    const std::string decoded = to_valid_utf8((*tokenizer)->decode(expected));
    const std::string_view theirs = line["decoded"].get_string().value();
    const std::size_t at = common_prefix(decoded, theirs);
    EXPECT_TRUE(decoded == theirs) << path.filename() << ", byte " << at << ": '" << around(decoded, at)
                                   << "' and theirs '" << around(theirs, at) << "'";
  }
  EXPECT_GT(num_cases, 20u) << path;
}

TEST(TokenizerJson, GivesTheLibrarysIdsAndText) {
  const char* folder = std::getenv("KVASIR_TOKENIZER_CASES");
  std::size_t num_files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(
           folder != nullptr ? folder : KVASIR_SOURCE_DIR "/tests/cases/tokenizer_json")) {
    if (entry.path().extension() != ".json") continue;
    check_cases(entry.path());
    ++num_files;
  }
  EXPECT_GT(num_files, folder != nullptr ? 0u : 15u);
}

// A byte-level model of the letters a, b and "ab" with one special token and one word of a user.
constexpr std::string_view kTiny = R"({
  "added_tokens": [{"id": 4, "content": "<s>", "special": true, "normalized": true},
                   {"id": 5, "content": "<b>", "special": false, "normalized": false}],
  "normalizer": {"type": "Lowercase"}, "pre_tokenizer": null, "post_processor": null, "decoder": {"type": "Fuse"},
  "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "é": 3}, "merges": ["a b"]}})";

std::string changed(std::string_view from, std::string_view to) {
  std::string json(kTiny);
  const std::size_t at = json.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return json.replace(at, from.size(), to);
}

TEST(TokenizerJson, AnAddedTokenWithoutATextIsNone) {
  for (const std::string_view special : {"true", "false"}) {
    const std::string entry = R"([{"id": 9, "content": "", "special": )" + std::string(special) + "}, ";
    const auto tokenizer = load(changed(R"([{"id": 4,)", entry + R"({"id": 4,)"));
    ASSERT_TRUE(tokenizer) << tokenizer.error().message;
    EXPECT_EQ((*tokenizer)->vocab().num_tokens(), 6);
    EXPECT_EQ((*tokenizer)->encode("ab<s>a", {.parse_special = true}), (Ids{2, 4, 0}));
  }
}

TEST(TokenizerJson, ControlTokensAreTextUnlessAsked) {
  const auto tokenizer = load(kTiny).value();
  EXPECT_EQ(tokenizer->encode("ab<s>a", {.parse_special = true}), (Ids{2, 4, 0}));
  EXPECT_EQ(tokenizer->encode("ab<s>a"), (Ids{2, 0}));  // no tokens for '<', 's' and '>'
  EXPECT_EQ(tokenizer->encode("A<b>B"), (Ids{0, 5, 1}));
  EXPECT_EQ(tokenizer->control_token_starts("ab<s>"), (std::vector<std::size_t>{2}));
  const std::size_t plain_at[] = {1};
  EXPECT_EQ(tokenizer->encode("a<s><s>", {.parse_special = true, .plain_at = plain_at}), (Ids{0, 4}));
  EXPECT_EQ(tokenizer->decode(Ids{4, 2, 5}), "ab<b>");
}

TEST(TokenizerJson, APieceIsTextThoughItLooksLikeAControlToken) {
  const std::string json = changed(R"("é": 3)", R"("é": 3, "<|im_end|>": 6)");
  const auto tokenizer = load(json).value();
  EXPECT_EQ(tokenizer->decode(Ids{2, 6}), "ab<|im_end|>");
  EXPECT_FALSE(tokenizer->vocab().is_end_of_generation(6));
  const auto named = load_tokenizer_json({.tokenizer_json = json, .config = R"({"eos_token_id": 6})"}).value();
  EXPECT_TRUE(named->vocab().is_end_of_generation(6));
  EXPECT_EQ(named->decode(Ids{2, 6}), "ab");
}

TEST(TokenizerJson, TheOtherFilesNameSpecialTokens) {
  const TokenizerFiles files = {
      .tokenizer_json = kTiny,
      .tokenizer_config = R"({"bos_token": {"content": "<s>"}, "eos_token": "b", "add_bos_token": true})",
      .config = R"({"text_config": {"eos_token_id": 0}, "bos_token_id": 99})",
      .generation_config = R"({"eos_token_id": [1, 5, 77]})"};
  const auto tokenizer = load_tokenizer_json(files).value();
  EXPECT_EQ(tokenizer->vocab().bos(), 4);
  EXPECT_EQ(tokenizer->vocab().eos(), 1);
  EXPECT_EQ(tokenizer->vocab().end_of_generation(), (Ids{0, 1, 5}));
  EXPECT_TRUE(tokenizer->adds_bos());
  EXPECT_EQ(tokenizer->encode("ab"), (Ids{4, 2}));
  EXPECT_EQ(tokenizer->encode("<s>ab", {.parse_special = true}), (Ids{4, 2}));
  const auto broken = load_tokenizer_json({.tokenizer_json = kTiny, .config = "[]"});
  EXPECT_EQ(broken.error().message, "config.json: an object is wanted here");
}

TEST(TokenizerJson, ATemplateDecidesOverTheConfiguration) {
  const std::string json = changed(R"("post_processor": null)",
                                   R"("post_processor": {"type": "TemplateProcessing",
    "single": [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "<s>", "type_id": 0}}],
    "pair": [{"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "B", "type_id": 1}}],
    "special_tokens": {"<s>": {"id": "<s>", "ids": [4], "tokens": ["<s>"]}}})");
  const auto tokenizer = load_tokenizer_json(
                             {.tokenizer_json = json,
                              .tokenizer_config = R"({"bos_token": "a", "add_bos_token": true})"})
                             .value();
  EXPECT_EQ(tokenizer->encode("b"), (Ids{1, 4}));
  const auto pair = tokenizer->encode_pair("a", "b").value();
  EXPECT_EQ(pair.ids, (Ids{0, 4, 1}));
  EXPECT_EQ(pair.token_types, (std::vector<std::uint8_t>{0, 0, 1}));
}

TEST(TokenizerJson, NamesThePlaceOfAFault) {
  EXPECT_NE(error_of("{").find("tokenizer.json: "), std::string::npos);
  EXPECT_EQ(error_of("{}"), "tokenizer.json: 'model' is missing");
  EXPECT_EQ(
      error_of(changed("\"BPE\"", "\"Markov\"")),
      "tokenizer.json/model: the model 'Markov' is not known (BPE, Unigram, WordPiece and WordLevel are)");
  EXPECT_EQ(error_of(changed("Lowercase", "Shout")),
            "tokenizer.json/normalizer: the normalizer 'Shout' is not known");
  EXPECT_EQ(error_of(changed(R"("a b")", R"("a x")")),
            "tokenizer.json/model/merges: merge 0 has 'x', which is no token");
  EXPECT_EQ(error_of(changed(R"("pre_tokenizer": null)",
                             R"j("pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Split",
                                 "pattern": {"Regex": "a(?<=b)"}, "behavior": "Isolated"}]})j")),
            "tokenizer.json/pre_tokenizer/pretokenizers/0/pattern/Regex: pattern 'a(?<=b)', character 4: "
            "look-behind is "
            "not supported");
  EXPECT_EQ(error_of(changed("\"ab\": 2", "\"ab\": 0")), "tokenizer.json: id 0 is 'a' and 'ab'");
  EXPECT_NE(error_of(changed("\"ab\": 2", "\"ab\": 99999999")).find("has the id 99999999"),
            std::string::npos);
  EXPECT_NE(error_of(changed("\"merges\"", "\"dropout\": 0.1, \"merges\"")).find("dropout"),
            std::string::npos);
}

TEST(TokenizerJson, BoundsTheLengthOfANormalisedText) {
  const auto with_steps = [](int count, std::string_view pattern) {
    std::string steps;
    for (int i = 0; i < count; ++i) {
      steps += (i > 0 ? ", " : "") + std::string(R"({"type": "Replace", "content": "aaaaaaaaaa", "pattern": {")") +
               std::string(pattern) + "}}";
    }
    return changed(R"({"type": "Lowercase"})", R"({"type": "Sequence", "normalizers": [)" + steps + "]}");
  };
  EXPECT_TRUE(load(with_steps(3, R"(Regex": ".")")));
  EXPECT_TRUE(load(with_steps(9, R"(String": "bbbbbbbbbb")")));
  EXPECT_EQ(error_of(with_steps(6, R"(Regex": ".")")),
            "tokenizer.json/normalizer: may make a text 1e+06 times as long, at most 4096 is allowed");
  EXPECT_EQ(error_of(changed("Lowercase\"", R"(Prepend", "prepend": ")" + std::string(5000, 'a') + '"')),
            "tokenizer.json/normalizer: may make a text 5e+03 times as long, at most 4096 is allowed");
}

// Published files of Mistral have a vocabulary of 131,072 tokens and the pattern of Llama 3.
TEST(TokenizerJson, MendsTheKnownFaultOfMistralFiles) {
  std::string json =
      R"({"added_tokens": [{"id": 3, "content": "[INST]", "special": true}], "decoder": {"type": "ByteLevel"},
    "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Split", "behavior": "Isolated", "pattern": {"Regex":
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}},
    {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]},
    "model": {"type": "BPE", "ignore_merges": true, "merges": [], "vocab": {"1": 0, "2": 1, "12": 2)";
  for (int id = 4; id < 131072; ++id) json += ", \"t" + std::to_string(id) + "\": " + std::to_string(id);
  json += "}}}";
  std::vector<std::string> notices;
  const auto mistral = load_tokenizer_json({.tokenizer_json = json}, &notices).value();
  EXPECT_EQ(mistral->encode("12"), (Ids{0, 1}));  // tekken has every number alone
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_NE(notices[0].find("Mistral"), std::string::npos);
  const auto other = load(json.replace(json.find("[INST]"), 6, "[WHAT]")).value();
  EXPECT_EQ(other->encode("12"), (Ids{2}));
}

}  // namespace
}  // namespace kvasir::text::tokenizer_json_test
