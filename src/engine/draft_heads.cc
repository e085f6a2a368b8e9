#include "engine/draft_heads.h"

#include <fmt/format.h>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/printable.h"
#include "engine/built_in_heads.h"
#include "io/model_fingerprint.h"

namespace kvasir {
namespace {

bool wants_heads(const EngineConfig& config) { return config.speculates && config.drafts_from_heads; }

// Empty: there is none.
std::string heads_path_of(const EngineConfig& config) {
  if (!wants_heads(config)) return {};
  if (!config.draft_heads_path.empty()) return config.draft_heads_path;
  std::string beside = io::draft_file_path(config.model_path);
  std::error_code ignored;
  return std::filesystem::exists(beside, ignored) ? beside : std::string();
}

}  // namespace

std::uint64_t tokens_hash(const text::Tokenizer* tokenizer) {
  if (tokenizer == nullptr) return 0;
  std::uint64_t hash = 0xCBF29CE484222325;  // FNV-1a
  const auto add = [&hash](unsigned char byte) { hash = (hash ^ byte) * 0x100000001B3; };
  const text::Vocab& vocab = tokenizer->vocab();
  for (TokenId id = 0; id < vocab.num_tokens(); ++id) {
    for (const char character : vocab.text(id)) add(static_cast<unsigned char>(character));
    add(0);
  }
  return hash;
}

Result<spec::NgramTable> table_of(const io::DraftFile& file, std::int32_t vocab_size, const text::Tokenizer* tokenizer) {
  if (file.base_tokens != tokens_hash(tokenizer) || file.vocab_size > vocab_size) {
    return make_error(ErrorKind::kBadFile, fmt::format("it was made of {}, whose tokens are not this model's",
                                                       printable_line(file.base_name)));
  }
  return spec::NgramTable::of_words(file.order, file.words, vocab_size);
}

Result<std::optional<io::DraftFile>> find_built_in_draft(const std::string& model_path) {
  if (built_in_heads().empty()) return std::nullopt;
  KVASIR_TRY(const std::string fingerprint, io::model_fingerprint(model_path));
  for (const std::span<const std::byte> bytes : built_in_heads()) {
    auto file = io::parse_draft_file(bytes, "built-in draft file");
    CHECK(file.has_value());
    if (file->base_fingerprint == fingerprint) return *std::move(file);
  }
  return std::nullopt;
}

Result<std::shared_ptr<const spec::NgramTable>> load_draft_heads(const EngineConfig& config, std::int32_t vocab_size,
                                                                 const text::Tokenizer* tokenizer) {
  if (!wants_heads(config)) return nullptr;
  const std::string path = heads_path_of(config);
  std::optional<io::DraftFile> found;
  if (path.empty()) {
    KVASIR_TRY(found, find_built_in_draft(config.model_path));
    if (!found) return nullptr;
  } else {
    KVASIR_TRY(found, io::read_draft_file(path));
  }
  const io::DraftFile& file = *found;
  auto table = table_of(file, vocab_size, tokenizer);
  if (!table) {
    return make_error(table.error().kind, fmt::format("{}: {}", printable_line(path), table.error().message), "draft-heads");
  }
  return std::make_shared<const spec::NgramTable>(std::move(*table));
}

std::int64_t draft_heads_bytes(const EngineConfig& config) {
  const std::string path = heads_path_of(config);
  if (path.empty()) return 0;
  std::error_code failed;
  const std::uintmax_t bytes = std::filesystem::file_size(path, failed);
  return failed ? 0 : static_cast<std::int64_t>(bytes);
}

}  // namespace kvasir
