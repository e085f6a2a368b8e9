// Which of MaskBench's schemas compile, and whether exactly their valid instances are accepted.
//
//   kvasir_mask_bench FILE    lines of JSON: {"name", "schema", "tests": [{"valid", "data"}]}
//
// Each byte is a token. Instances are written without blanks, their members in the order of the file. A line for each
// schema that is refused, takes longer than 200 ms or judges an instance otherwise. Exit code 1: an invalid instance was accepted.
#include <simdjson.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
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

constexpr double kSlowMs = 200.0;

struct Counts {
  int schemas = 0;
  int passed = 0;
  int refused = 0;
  int wrong_accepts = 0;
  int false_rejects = 0;
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

void judge(const std::string& line, const std::shared_ptr<const Vocabulary>& vocabulary, Counts& counts) {
  simdjson::dom::parser parser;
  const simdjson::dom::element element = parser.parse(line);
  const std::string name(element["name"].get_string().value());
  ++counts.schemas;
  const auto begin = std::chrono::steady_clock::now();
  const auto grammar = compile(simdjson::to_string(element["schema"]), vocabulary);
  const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  if (ms > kSlowMs) std::printf("slow %s: %.0f ms\n", name.c_str(), ms);
  if (!grammar) {
    ++counts.refused;
    std::printf("refused %s: %s\n", name.c_str(), grammar.error().message.c_str());
    return;
  }
  bool is_right = true;
  for (const simdjson::dom::element test : element["tests"].get_array()) {
    const bool is_valid = test["valid"].get_bool();
    const std::string text = simdjson::to_string(test["data"]);
    if (accepts(*grammar, text) == is_valid) continue;
    is_right = false;
    ++(is_valid ? counts.false_rejects : counts.wrong_accepts);
    std::printf("%s %s: %.200s\n", is_valid ? "false reject" : "wrong accept", name.c_str(), text.c_str());
  }
  counts.passed += is_right ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: kvasir_mask_bench FILE\n", stderr);
    return 2;
  }
  std::ifstream file(argv[1]);
  if (!file) {
    std::fprintf(stderr, "kvasir_mask_bench: %s: cannot be read\n", argv[1]);
    return 3;
  }
  const auto vocabulary = byte_vocabulary();
  Counts counts;
  for (std::string line; std::getline(file, line);) judge(line, vocabulary, counts);
  std::printf("%d schemas, %d passed, %d refused, %d wrong accepts, %d false rejects\n", counts.schemas, counts.passed,
              counts.refused, counts.wrong_accepts, counts.false_rejects);
  return counts.wrong_accepts == 0 ? 0 : 1;
}
