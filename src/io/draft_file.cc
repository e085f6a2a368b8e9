#include "io/draft_file.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstddef>
#include <filesystem>
#include <limits>
#include <string_view>
#include <utility>

#include "base/printable.h"
#include "io/gguf_append.h"
#include "io/gguf_entries.h"
#include "io/gguf_reader.h"
#include "io/gguf_writer.h"
#include "io/mmap_file.h"

namespace kvasir::io {
namespace {

constexpr std::string_view kDraftArchitecture = "kvasir-draft", kDraftKind = "ngram";
constexpr std::int64_t kMostWords = std::int64_t{1} << 26;
constexpr std::int32_t kMostVocab = 1 << 24, kMostOrder = 64;

std::unexpected<Error> bad_draft(const std::string& name, std::string_view what) {
  return make_error(ErrorKind::kBadFile, fmt::format("{}: {}", printable_line(name), what));
}

Result<std::vector<std::int64_t>> ints_of(const Metadata& metadata, std::string_view key, std::int64_t least,
                                          std::int64_t most) {
  KVASIR_TRY(auto found, metadata.find_ints(key));
  if (!found) return make_error(ErrorKind::kBadFile, fmt::format("{} is missing", key));
  for (const std::int64_t value : *found) {
    if (value >= least && value <= most) continue;
    return make_error(ErrorKind::kBadFile, fmt::format("{}: {} is not between {} and {}", key, value, least, most));
  }
  return std::move(*found);
}

Status read_words(const Metadata& metadata, DraftFile& file) {
  constexpr std::int64_t kLeast = std::numeric_limits<std::int32_t>::min(), kMost = std::numeric_limits<std::int32_t>::max();
  KVASIR_TRY(const auto words, ints_of(metadata, "draft.table", kLeast, kMost));
  if (std::ssize(words) > kMostWords) {
    return make_error(ErrorKind::kBadFile, fmt::format("draft.table: {} words, at most {}", words.size(), kMostWords));
  }
  file.words.reserve(words.size());
  for (const std::int64_t word : words) file.words.push_back(static_cast<std::uint32_t>(word));
  return {};
}

Status read_acceptance(const Metadata& metadata, DraftFile& file) {
  KVASIR_TRY(const auto found, metadata.find_floats("draft.acceptance"));
  if (found) file.acceptance = *found;
  for (const double share : file.acceptance) {
    if (share >= 0.0 && share <= 1.0) continue;
    return make_error(ErrorKind::kBadFile, fmt::format("draft.acceptance: {} is no share", share));
  }
  return {};
}

// The prompts lie one behind another.
Status read_held_out(const Metadata& metadata, DraftFile& file) {
  KVASIR_TRY(const auto tokens, ints_of(metadata, "draft.held_out.tokens", 0, file.vocab_size - 1));
  KVASIR_TRY(const auto lengths, ints_of(metadata, "draft.held_out.lengths", 1, std::ssize(tokens)));
  std::size_t begin = 0;
  for (const std::int64_t length : lengths) {
    const auto size = static_cast<std::size_t>(length);
    if (size > tokens.size() - begin) return make_error(ErrorKind::kBadFile, "draft.held_out.lengths: more than there are tokens");
    std::vector<TokenId>& prompt = file.held_out_prompts.emplace_back();
    for (std::size_t i = begin; i < begin + size; ++i) prompt.push_back(static_cast<TokenId>(tokens[i]));
    begin += size;
  }
  KVASIR_TRY(const std::int64_t most, metadata.get_int("draft.held_out.max_tokens", 1, 1 << 16));
  file.held_out_tokens = static_cast<std::int32_t>(most);
  return {};
}

Status read_entries(const Metadata& metadata, DraftFile& file) {
  KVASIR_TRY(const std::string architecture, metadata.get_string("general.architecture"));
  if (architecture != kDraftArchitecture) {
    return make_error(ErrorKind::kBadFile, fmt::format("no draft file: its architecture is {}", printable_line(architecture)));
  }
  KVASIR_TRY(const std::string kind, metadata.get_string("draft.kind"));
  if (kind != kDraftKind) {
    return make_error(ErrorKind::kBadFile, fmt::format("draft.kind: {} is not known, {} is", printable_line(kind), kDraftKind));
  }
  KVASIR_TRY(file.base_name, metadata.get_string("draft.base.name"));
  KVASIR_TRY(file.base_fingerprint, metadata.get_string("draft.base.fingerprint"));
  KVASIR_TRY(const auto halves, ints_of(metadata, "draft.base.tokens", 0, std::numeric_limits<std::uint32_t>::max()));
  if (halves.size() != 2) return make_error(ErrorKind::kBadFile, "draft.base.tokens: two halves of a hash are expected");
  file.base_tokens = static_cast<std::uint64_t>(halves[0]) << 32 | static_cast<std::uint64_t>(halves[1]);
  KVASIR_TRY(const std::int64_t vocab_size, metadata.get_int("draft.base.vocab_size", 1, kMostVocab));
  file.vocab_size = static_cast<std::int32_t>(vocab_size);
  KVASIR_TRY(file.trained_on, metadata.get_string("draft.trained_on"));
  KVASIR_TRY(const std::int64_t order, metadata.get_int("draft.order", 1, kMostOrder));
  file.order = static_cast<std::int32_t>(order);
  KVASIR_CHECKED(read_words(metadata, file));
  KVASIR_CHECKED(read_acceptance(metadata, file));
  return read_held_out(metadata, file);
}

std::vector<std::int32_t> as_ints(std::span<const std::uint32_t> words) {
  std::vector<std::int32_t> ints;
  ints.reserve(words.size());
  for (const std::uint32_t word : words) ints.push_back(std::bit_cast<std::int32_t>(word));
  return ints;
}

GgufEntry hash_entry(std::string key, std::uint64_t hash) {
  std::string value;
  constexpr auto kElements = static_cast<std::uint32_t>(GgufValueType::kUint32);
  const std::array<std::uint32_t, 2> halves = {static_cast<std::uint32_t>(hash >> 32), static_cast<std::uint32_t>(hash)};
  append(value, kElements);
  append<std::uint64_t>(value, halves.size());
  for (const std::uint32_t half : halves) append(value, half);
  return {.key = std::move(key), .type = static_cast<std::uint32_t>(GgufValueType::kArray), .value = std::move(value)};
}

std::vector<GgufEntry> entries_of(const DraftFile& file) {
  std::vector<std::int32_t> tokens, lengths;
  for (const std::vector<TokenId>& prompt : file.held_out_prompts) {
    tokens.insert(tokens.end(), prompt.begin(), prompt.end());
    lengths.push_back(static_cast<std::int32_t>(prompt.size()));
  }
  const std::vector<float> acceptance(file.acceptance.begin(), file.acceptance.end());
  return {string_entry("general.architecture", kDraftArchitecture),
          string_entry("general.type", "draft"),
          string_entry("draft.kind", kDraftKind),
          string_entry("draft.base.name", file.base_name),
          string_entry("draft.base.fingerprint", file.base_fingerprint),
          hash_entry("draft.base.tokens", file.base_tokens),
          uint32_entry("draft.base.vocab_size", static_cast<std::uint32_t>(file.vocab_size)),
          string_entry("draft.trained_on", file.trained_on),
          floats_entry("draft.acceptance", acceptance),
          uint32_entry("draft.order", static_cast<std::uint32_t>(file.order)),
          uint32_entry("draft.held_out.max_tokens", static_cast<std::uint32_t>(file.held_out_tokens)),
          int32s_entry("draft.held_out.lengths", lengths),
          int32s_entry("draft.held_out.tokens", tokens),
          int32s_entry("draft.table", as_ints(file.words))};
}

}  // namespace

std::string draft_file_path(const std::string& model_path) {
  std::string path = model_path;
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path + ".draft";
}

Result<DraftFile> parse_draft_file(std::span<const std::byte> bytes, const std::string& name) {
  KVASIR_TRY(const GgufContents contents, parse_gguf(bytes, name));
  DraftFile file;
  if (const Status status = read_entries(contents.metadata, file); !status) return bad_draft(name, status.error().message);
  return file;
}

Result<DraftFile> read_draft_file(const std::string& path) {
  KVASIR_TRY(const MmapFile file, MmapFile::open(path));
  return parse_draft_file(file.bytes(), path);
}

Status write_draft_file(const std::string& path, const DraftFile& file) {
  const std::string unfinished = path + ".part";
  std::error_code failed;
  std::filesystem::remove(unfinished, failed);
  const GgufLayout layout(entries_of(file), {});
  KVASIR_TRY(GgufWriter writer, GgufWriter::open(unfinished, layout));
  KVASIR_CHECKED(writer.finish());
  std::filesystem::rename(unfinished, path, failed);
  if (failed) return make_error(ErrorKind::kMachine, fmt::format("{}: {}", printable_line(path), failed.message()));
  return {};
}

}  // namespace kvasir::io
