#include "server/api/fim_prompt.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "text/fim_tokens.h"
#include "text/tokenizer.h"

namespace kvasir::server::api {
namespace {

using Tokens = std::vector<TokenId>;

constexpr std::string_view kRepositoryName = "myproject\n";
constexpr std::string_view kFileName = "filename\n";
constexpr std::string_view kNamelessFile = "tmp";

Tokens plain_tokens(const text::Tokenizer& tokenizer, std::string_view text) {
  return tokenizer.encode(text, {.parse_special = false, .add_special = false});
}

void append(Tokens& tokens, std::span<const TokenId> more) { tokens.insert(tokens.end(), more.begin(), more.end()); }

// Where a file begins; empty where the model has no mark for files, and a line of text stands for it.
Tokens file_begin(const text::Tokenizer& tokenizer, std::string_view name) {
  const TokenId mark = tokenizer.vocab().fim_tokens().separator;
  if (mark == kNoToken) return plain_tokens(tokenizer, "\n\n--- snippet ---\n");
  Tokens tokens{mark};
  append(tokens, plain_tokens(tokenizer, name));
  return tokens;
}

Tokens chunk_tokens(const text::Tokenizer& tokenizer, const FimChunk& chunk) {
  const std::string name = fmt::format("{}\n", chunk.file_name.empty() ? kNamelessFile : chunk.file_name);
  Tokens tokens = file_begin(tokenizer, name);
  append(tokens, plain_tokens(tokenizer, chunk.text));
  return tokens;
}

// The last chunks, which are the newest, as far as there is room; empty: none fits.
Tokens repository_tokens(const text::Tokenizer& tokenizer, const std::vector<FimChunk>& chunks, std::int64_t room) {
  const text::FimTokens fim = tokenizer.vocab().fim_tokens();
  Tokens begin;
  if (fim.repository != kNoToken) {
    begin.push_back(fim.repository);
    append(begin, plain_tokens(tokenizer, kRepositoryName));
  }
  const Tokens own_file = fim.separator == kNoToken ? Tokens() : file_begin(tokenizer, kFileName);
  room -= std::ssize(begin) + std::ssize(own_file);
  std::vector<Tokens> taken;
  for (auto chunk = chunks.rbegin(); chunk != chunks.rend(); ++chunk) {
    Tokens tokens = chunk_tokens(tokenizer, *chunk);
    if (std::ssize(tokens) > room) break;
    room -= std::ssize(tokens);
    taken.push_back(std::move(tokens));
  }
  if (taken.empty()) return {};
  for (auto tokens = taken.rbegin(); tokens != taken.rend(); ++tokens) append(begin, *tokens);
  append(begin, own_file);
  return begin;
}

// Cuts the far ends: a quarter is the suffix's, if it needs it.
void cut(Tokens& prefix, Tokens& suffix, std::int64_t room) {
  const std::int64_t for_suffix = std::min<std::int64_t>(std::ssize(suffix), std::max(room / 4, room - std::ssize(prefix)));
  const std::int64_t for_prefix = std::min<std::int64_t>(std::ssize(prefix), room - for_suffix);
  prefix.erase(prefix.begin(), prefix.end() - for_prefix);
  suffix.resize(static_cast<std::size_t>(for_suffix));
}

}  // namespace

ApiResult<std::vector<TokenId>> fim_prompt(const ApiContext& context, const FimParts& parts,
                                           std::optional<std::int32_t> max_tokens, std::string_view field,
                                           Warnings& warnings) {
  const text::Tokenizer* const tokenizer = context.engine.tokenizer();
  if (tokenizer == nullptr) return bad_request("the model file has no tokenizer", std::string(field));
  const text::FimTokens fim = tokenizer->vocab().fim_tokens();
  if (!fim.are_there()) {
    return bad_request(fmt::format("{}: the model has no tokens for filling in (fim_pre, fim_suf, fim_mid)", field),
                       std::string(field), "unsupported_parameter");
  }
  Tokens prefix = plain_tokens(*tokenizer, parts.prefix), suffix = plain_tokens(*tokenizer, parts.suffix);
  const Tokens middle = plain_tokens(*tokenizer, parts.middle);
  const bool has_bos = tokenizer->adds_bos();
  const std::int64_t frame = 3 + (has_bos ? 1 : 0) + std::ssize(middle);
  const std::int64_t most = context.engine.model_info().max_model_len_tokens;
  const std::int64_t for_answer = max_tokens ? std::min<std::int64_t>(*max_tokens, most / 2) : most / 4;
  const std::int64_t room = std::max<std::int64_t>(0, most - for_answer - frame);
  if (std::ssize(prefix) + std::ssize(suffix) > room) {
    warnings.add(fmt::format("the text around was cut to the {} tokens that the context has room for", room));
    cut(prefix, suffix, room);
  }
  Tokens prompt;
  if (has_bos) prompt.push_back(tokenizer->vocab().bos());
  append(prompt, repository_tokens(*tokenizer, parts.chunks, room - std::ssize(prefix) - std::ssize(suffix)));
  prompt.push_back(fim.prefix);
  append(prompt, prefix);
  prompt.push_back(fim.suffix);
  append(prompt, suffix);
  prompt.push_back(fim.middle);
  append(prompt, middle);
  return prompt;
}

}  // namespace kvasir::server::api
