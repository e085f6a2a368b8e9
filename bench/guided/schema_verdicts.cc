// What guides say about instances of schemas, for scripts that compare it with other validators.
//
//   kvasir_schema_verdicts [--samples N] FILE    lines of JSON: {"name", "schema", "tests": [{"data"}]}
//   kvasir_schema_verdicts --times FILE          only how long each schema takes: "compiled" or "refused", name, ms of
//                                                processor time, the message
//
// Each byte is a token. A line for each instance, its fields with tabs between: "accepted" or "rejected", name, instance.
// A schema that does not compile gives one line: "refused", name, message. With --samples, N lines more for each schema:
// "sample", name, a text that the guide lets pass, by a random walk whose seed is the line's number.
#include <simdjson.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/compile/compiled_grammar.h"
#include "grammar/match/matcher.h"
#include "grammar/schema/json_schema.h"

namespace {

using kvasir::Result;
using kvasir::TokenId;
using namespace kvasir::grammar;

constexpr std::size_t kMaxSampleBytes = 4000;
constexpr std::size_t kLongBytes = 60;  // from here on the walk looks for the end

struct Settings {
  int num_samples = 0;
  bool only_times = false;
};

std::shared_ptr<const Vocabulary> byte_vocabulary() {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  const std::vector<std::string_view> views(tokens.begin(), tokens.end());
  return std::make_shared<const Vocabulary>(views);
}

Result<std::shared_ptr<const CompiledGrammar>> compile(std::string_view schema,
                                                       const std::shared_ptr<const Vocabulary>& vocabulary) {
  auto store = std::make_unique<TermStore>();
  KVASIR_TRY(SchemaGrammar made, grammar_from_schema(*store, schema));
  return CompiledGrammar::create(std::move(store), std::move(made.grammar), vocabulary);
}

bool accepts(const std::shared_ptr<const CompiledGrammar>& grammar, std::string_view text) {
  GrammarMatcher matcher(grammar);
  for (const char byte : text) {
    if (!matcher.accept(static_cast<TokenId>(static_cast<unsigned char>(byte)))) return false;
  }
  return matcher.is_accepting();
}

// How soon a byte ends a text: marks first, blanks and openings last.
int nearness(unsigned char byte) {
  constexpr std::string_view kOrder = "}]\":,0123456789nulltruefalsex";
  const std::size_t place = kOrder.find(static_cast<char>(byte));
  return place == std::string_view::npos ? (byte == '{' || byte == '[' ? 300 : 200) : static_cast<int>(place);
}

// Empty: none was found in kMaxSampleBytes.
std::string sample(const std::shared_ptr<const CompiledGrammar>& grammar, std::mt19937_64& random) {
  GrammarMatcher matcher(grammar);
  TokenMask mask(256);
  std::string text;
  while (text.size() < kMaxSampleBytes) {
    if (matcher.is_accepting() && (matcher.must_end() || text.size() > kLongBytes || random() % 3 == 0)) return text;
    matcher.fill(mask);
    std::vector<unsigned char> bytes;
    for (int byte = 0; byte < 256; ++byte) {
      const bool is_blank = byte == ' ' || byte == '\t' || byte == '\n';
      if (mask.test(byte) && (!is_blank || random() % 8 == 0)) bytes.push_back(static_cast<unsigned char>(byte));
    }
    if (bytes.empty()) {
      if (mask.count() == 0) return {};
      continue;
    }
    unsigned char chosen = bytes[random() % bytes.size()];
    if (text.size() > kLongBytes && random() % 16 != 0) {
      for (const unsigned char byte : bytes) chosen = nearness(byte) < nearness(chosen) ? byte : chosen;
    }
    if (!matcher.accept(chosen)) return {};
    text += static_cast<char>(chosen);
  }
  return {};
}

std::string without_blanks(const std::string& json) {
  std::string text(json.size(), '\0');
  std::size_t size_bytes = 0;
  if (simdjson::minify(json.data(), json.size(), text.data(), size_bytes)) return {};
  text.resize(size_bytes);
  return text;
}

double thread_ms() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

void judge(const std::string& line, const std::shared_ptr<const Vocabulary>& vocabulary, const Settings& settings,
           std::uint64_t seed) {
  simdjson::ondemand::parser parser;
  const simdjson::padded_string padded(line);
  simdjson::ondemand::document document = parser.iterate(padded);
  const std::string name(document["name"].get_string().value());
  const std::string schema(simdjson::to_json_string(document["schema"].value()).value());
  const double begin_ms = thread_ms();
  const auto grammar = compile(schema, vocabulary);
  if (settings.only_times) {
    std::printf("%s\t%s\t%.3f\t%s\n", grammar ? "compiled" : "refused", name.c_str(), thread_ms() - begin_ms,
                grammar ? "" : grammar.error().message.c_str());
    return;
  }
  if (!grammar) {
    std::printf("refused\t%s\t%s\n", name.c_str(), grammar.error().message.c_str());
    return;
  }
  for (auto test : document["tests"].get_array()) {
    const std::string text(simdjson::to_json_string(test["data"].value()).value());
    std::printf("%s\t%s\t%s\n", accepts(*grammar, text) ? "accepted" : "rejected", name.c_str(), text.c_str());
  }
  std::mt19937_64 random(seed);
  for (int i = 0; i < settings.num_samples; ++i) {
    const std::string text = sample(*grammar, random);
    if (!text.empty()) std::printf("sample\t%s\t%s\n", name.c_str(), without_blanks(text).c_str());
  }
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  if (argc == 4 && std::string_view(argv[1]) == "--samples") settings.num_samples = std::atoi(argv[2]);
  if (argc == 3 && std::string_view(argv[1]) == "--times") settings.only_times = true;
  if (argc != 2 && settings.num_samples == 0 && !settings.only_times) {
    std::fputs("usage: kvasir_schema_verdicts [--samples N | --times] FILE\n", stderr);
    return 2;
  }
  const char* path = argv[argc - 1];
  std::ifstream file(path);
  if (!file) {
    std::fprintf(stderr, "kvasir_schema_verdicts: %s: cannot be read\n", path);
    return 3;
  }
  const auto vocabulary = byte_vocabulary();
  std::uint64_t seed = 0;
  for (std::string line; std::getline(file, line);) judge(line, vocabulary, settings, ++seed);
  return 0;
}
