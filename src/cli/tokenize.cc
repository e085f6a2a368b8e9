// kvasir tokenize: text to token ids and back, from the model file's metadata alone.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <charconv>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "base/printable.h"
#include "cli/input_file.h"
#include "cli/standard_output.h"
#include "cli/verb.h"
#include "engine/open_model.h"
#include "store/model_store.h"

namespace kvasir::cli {
namespace {

struct TokenizeOptions {
  std::string model;
  std::vector<std::string> words;
  std::string file;
  bool special = false;
  bool no_special = false;
  bool no_bos = false;
  bool decode = false;
};

// Byte for byte: a tokenizer is judged by what it makes of every character, the last newline too.
Result<std::string> find_text(const TokenizeOptions& options) {
  if (!options.words.empty()) return fmt::format("{}", fmt::join(options.words, " "));
  if (!options.file.empty()) return read_input_file(options.file);
  if (::isatty(STDIN_FILENO) != 0) {
    return make_error(ErrorKind::kUsage, "TEXT: is missing (an argument, --file or the standard input)",
                      "text");
  }
  return read_standard_input();
}

// Numbers between spaces, commas, brackets and line ends: what `tokenize` prints, with --json or without.
Result<std::vector<TokenId>> parse_ids(std::string_view text) {
  constexpr std::string_view kBetween = " \t\r\n,[]";
  std::vector<TokenId> ids;
  while (true) {
    const std::size_t begin = text.find_first_not_of(kBetween);
    if (begin == std::string_view::npos) return ids;
    text.remove_prefix(begin);
    const std::string_view word = text.substr(0, text.find_first_of(kBetween));
    TokenId id = kNoToken;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (error != std::errc() || end != word.data() + word.size() || id < 0) {
      return make_error(ErrorKind::kUsage,
                        fmt::format("--decode: takes token ids from 0 to {}, not '{}'",
                                    std::numeric_limits<TokenId>::max(), printable(word)),
                        "decode");
    }
    ids.push_back(id);
    text.remove_prefix(word.size());
  }
}

Status check_ids(const text::Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  for (TokenId id : ids) {
    if (tokenizer.vocab().contains(id)) continue;
    return make_error(
        ErrorKind::kUsage,
        fmt::format("--decode: the vocabulary has {} tokens, no id {}", tokenizer.vocab().num_tokens(), id),
        "decode");
  }
  return {};
}

Result<int> decode(const TokenizeOptions& options, const GlobalOptions& globals,
                   const text::Tokenizer& tokenizer, std::string_view input) {
  KVASIR_TRY(const std::vector<TokenId> ids, parse_ids(input));
  KVASIR_CHECKED(check_ids(tokenizer, ids));
  const std::string text = tokenizer.decode(ids, options.special);
  if (!globals.json) {
    print(text);
    return finish_output();
  }
  std::string out;
  JsonWriter(out).begin_object().member("text", text).end_object();
  return print_document(std::move(out));
}

int print_ids(const std::vector<TokenId>& ids, const GlobalOptions& globals) {
  if (!globals.json) {
    print(fmt::format("{}\n", fmt::join(ids, " ")));
    return finish_output();
  }
  std::string out;
  JsonWriter json(out);
  json.begin_object().key("ids").begin_array();
  for (TokenId id : ids) json.value(id);
  json.end_array().end_object();
  return print_document(std::move(out));
}

Result<int> tokenize(const TokenizeOptions& options, const GlobalOptions& globals) {
  KVASIR_TRY(const std::string input, find_text(options));
  KVASIR_TRY(const std::string path, store::resolve_model(options.model));
  KVASIR_TRY(const auto tokenizer, open_tokenizer(path));
  if (options.decode) return decode(options, globals, *tokenizer, input);
  std::vector<TokenId> ids = tokenizer->encode(
      input, {.parse_special = !options.no_special, .add_special = !options.no_bos});
  return print_ids(ids, globals);
}

}  // namespace

void add_tokenize(CLI::App& app, Context& context) {
  auto options = std::make_shared<TokenizeOptions>();
  CLI::App* verb = app.add_subcommand("tokenize", "Tokenise text, or decode token ids with --decode");
  verb->add_option("MODEL", options->model, "Catalogue name, .gguf file or folder")->required();
  CLI::Option* text = verb->add_option("TEXT", options->words, "The text or, with --decode, the ids");
  verb->add_option("--file", options->file, "Read the text from a file")->excludes(text);
  CLI::Option* special = verb->add_flag(
      "--special", options->special,
      "Parse special tokens in the text (the default); --decode shows them");
  verb->add_flag("--no-special", options->no_special, "Special tokens in the text are plain text")
      ->excludes(special);
  verb->add_flag("--no-bos", options->no_bos, "Add neither BOS nor EOS");
  verb->add_flag("--decode", options->decode, "Ids to text");
  on_chosen(*verb, context, [options, &context] { return tokenize(*options, context.options); });
}

}  // namespace kvasir::cli
