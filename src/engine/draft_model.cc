#include "engine/draft_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

#include "base/printable.h"
#include "base/process_memory.h"
#include "engine/part_configs.h"
#include "engine/same_tokens.h"
#include "text/tokenizer.h"

namespace kvasir {
namespace {

constexpr std::int32_t kMaxSequences = 16;         // with more streams nothing is guessed
constexpr std::int64_t kCacheTokens = 16 * 1024;  // of all sequences
constexpr std::int32_t kShortRows = 4;            // what a step with guesses leaves to be read

EngineConfig draft_config(const EngineConfig& config) {
  EngineConfig own = config;
  own.model_path = config.draft_model_path;
  own.draft_model_path.clear();
  own.max_model_len_tokens = 0;  // its own
  own.max_num_seqs = std::min(config.max_num_seqs, kMaxSequences);
  own.kv_cache_tokens = kCacheTokens;
  own.reserved_bytes = 0;
  own.kv_journal = nullptr;
  own.kv_learner = nullptr;
  own.kv_calibration = own.kv_key_components = false;
  own.prefix_cache = false;
  own.prefill_only = false;
  own.public_prefixes.clear();
  own.adapters.clear();
  own.chat_template.clear();
  own.speculates = false;
  return own;
}

std::int64_t distribution_bytes(const EngineConfig& config) {
  if (config.draft_rule != DraftRule::kResidual) return 0;
  constexpr std::int64_t kBytes = sampling::Distribution::kMaxTokens * sizeof(sampling::Distribution::Entry);
  return kBytes * config.max_draft_tokens * std::min(config.max_num_seqs, kMaxSequences);
}

}  // namespace

Result<std::unique_ptr<DraftModel>> DraftModel::load(const EngineConfig& config, const LoadProgress& progress) {
  KVASIR_TRY(LoadedModel loaded, load_model_file(draft_config(config), progress));
  if (loaded.info.is_encoder) {
    return make_error(ErrorKind::kUsage, fmt::format("draft model: {} is an encoder, which generates nothing",
                                                     printable_line(loaded.info.name)));
  }
  return std::make_unique<DraftModel>(std::move(loaded), distribution_bytes(config));
}

DraftModel::DraftModel(LoadedModel loaded, std::int64_t distribution_bytes)
    : loaded_(std::move(loaded)),
      distribution_bytes_(distribution_bytes),
      num_shared_tokens_(loaded_.info.vocab_size),
      kv_(kv_config(loaded_.settings, loaded_)),
      runner_(*loaded_.model, *loaded_.backend, loaded_.kv_views(kv_.cells()),
              loaded_.prefill_only_memory(kv_.cells(), kv_.prefill_only().group()), loaded_.max_logit_rows) {}

std::int64_t DraftModel::num_bytes() const {
  return loaded_.memory.weight_bytes + loaded_.memory.workspace_bytes + loaded_.memory.kv_bytes + distribution_bytes_;
}

Status DraftModel::set_target(const text::Tokenizer* tokenizer, std::int32_t num_tokens) {
  num_shared_tokens_ = std::min(loaded_.info.vocab_size, num_tokens);
  return check_same_tokens("draft model", loaded_.tokenizer.get(), tokenizer);
}

// Whether the model can read the text. It has only grown since it was read last, so guesses alone are compared; what is
// computed of those that came stays.
bool DraftModel::follow(const Asked& asked, Followed& followed) {
  const auto vocab_size = static_cast<TokenId>(loaded_.info.vocab_size);
  const std::span<const TokenId> more = asked.tokens.subspan(followed.num_text_tokens);
  if (std::ranges::any_of(more, [&](TokenId token) { return token >= vocab_size; })) return false;
  const auto guesses = std::span(followed.tokens).subspan(followed.num_text_tokens);
  const auto num_right = static_cast<std::size_t>(std::ranges::mismatch(guesses, more).in1 - guesses.begin());
  followed.tokens.resize(followed.num_text_tokens + num_right);
  followed.tokens.insert(followed.tokens.end(), more.begin() + static_cast<std::ptrdiff_t>(num_right), more.end());
  const auto num_kept = static_cast<std::int32_t>(followed.num_text_tokens + num_right);
  followed.num_text_tokens = asked.tokens.size();
  // The last token is computed anew when it is there: its logits are wanted.
  followed.num_computed = std::min({followed.num_computed, num_kept, static_cast<std::int32_t>(asked.tokens.size()) - 1});
  return true;
}

bool DraftModel::make_room(Followed& followed, std::int32_t num_tokens) {
  if (num_tokens > loaded_.info.max_model_len_tokens) return false;
  if (kv_.allocate(followed.kv, num_tokens)) return true;
  forget_others();
  return kv_.allocate(followed.kv, num_tokens);
}

// Sequences that take no part in this call.
void DraftModel::forget_others() {
  for (auto it = followed_.begin(); it != followed_.end();) {
    const auto is_reading = [&](const Reader& reader) { return reader.followed == &it->second; };
    if (std::ranges::any_of(readers_, is_reading)) {
      ++it;
      continue;
    }
    kv_.free(it->second.kv);
    it = followed_.erase(it);
  }
}

void DraftModel::begin(const Asked& asked, Followed& followed) {
  const auto is_lacking = [&](TokenId token) { return token >= static_cast<TokenId>(loaded_.info.vocab_size); };
  followed.params = *asked.params;
  followed.params.logprobs.reset();
  followed.params.prompt_logprobs.reset();
  std::erase_if(followed.params.logit_bias, [&](const auto& bias) { return is_lacking(bias.first); });
  followed.stop_tokens.assign(asked.stop_tokens.begin(), asked.stop_tokens.end());
  std::erase_if(followed.stop_tokens, is_lacking);
  followed.kv = kv_.open(std::string_view(), /*use_prefix_cache=*/false, static_cast<std::int32_t>(asked.tokens.size()));
}

// The model is free to guess among fewer tokens than may come: none that it alone has, and where there is a mask none
// that ends the answer, for nothing may be chosen behind it. False: there is no such token.
bool DraftModel::find_allowed(Reader& reader) const {
  Asked& asked = *reader.asked;
  reader.words.clear();
  if (!asked.is_residual) return true;
  const auto allowed = asked.allowed_behind(asked.guesses);
  if (!allowed) return false;
  const auto num_shared = static_cast<std::size_t>(num_shared_tokens_);
  if (allowed->are_all() && num_shared_tokens_ == loaded_.info.vocab_size) return true;
  reader.words.assign((num_shared + 63) / 64, ~std::uint64_t{0});
  if (num_shared % 64 != 0) reader.words.back() >>= 64 - num_shared % 64;
  if (!allowed->are_all()) {
    for (std::size_t i = 0; i < reader.words.size(); ++i) {
      reader.words[i] &= i < allowed->words().size() ? allowed->words()[i] : 0;
    }
    for (const TokenId stop : reader.followed->stop_tokens) {
      const auto id = static_cast<std::size_t>(stop);
      if (id < num_shared) reader.words[id / 64] &= ~(std::uint64_t{1} << id % 64);
    }
  }
  return std::ranges::any_of(reader.words, [](std::uint64_t word) { return word != 0; });
}

void DraftModel::add_reader(Asked& asked, std::int32_t& rows_left) {
  const auto [found, is_new] = followed_.try_emplace(asked.id);
  Followed& followed = found->second;
  if (is_new) begin(asked, followed);
  const std::size_t place = readers_.size();
  readers_.push_back({.asked = &asked, .followed = &followed});
  const bool can_read = follow(asked, followed);
  const std::int32_t num_missing = static_cast<std::int32_t>(followed.tokens.size()) - followed.num_computed;
  const std::int32_t num_rows = std::min(num_missing, rows_left);
  const std::int32_t num_guesses = num_rows == num_missing ? asked.num_guesses : 0;
  if (!can_read || num_rows == 0 || !make_room(followed, followed.num_computed + num_rows + num_guesses)) {
    readers_.pop_back();
    if (is_new || !can_read) end(asked.id);
    return;
  }
  if (!find_allowed(readers_[place])) {
    readers_.pop_back();
    return;
  }
  if (asked.is_residual && std::cmp_less(asked.drawn_from.size(), asked.num_guesses)) {
    asked.drawn_from.resize(static_cast<std::size_t>(asked.num_guesses));
  }
  readers_[place].num_rows = num_rows;
  rows_left -= num_rows;
}

DraftModel::Passes DraftModel::guess(std::span<Asked> asked) {
  using Clock = std::chrono::steady_clock;
  readers_.clear();
  std::int32_t rows_left = loaded_.settings.max_num_batched_tokens;
  for (Asked& one : asked) {
    one.guesses.clear();
    if (one.num_guesses > 0) add_reader(one, rows_left);
  }
  Passes passes;
  while (!readers_.empty()) {
    const bool is_short = std::ranges::all_of(readers_, [](const Reader& reader) { return reader.num_rows <= kShortRows; });
    const auto begin = Clock::now();
    run_pass();
    take_results();
    if (!is_short) continue;
    ++passes.count;
    passes.milliseconds += std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  }
  return passes;
}

void DraftModel::run_pass() {
  output_.sequences.clear();
  output_.num_tokens = 0;
  tasks_.clear();
  for (const Reader& reader : readers_) {
    const Followed& followed = *reader.followed;
    Asked& asked = *reader.asked;
    tasks_.push_back({.params = &followed.params,
                      .seed = asked.seed,
                      .choice_index = asked.choice_index,
                      .allowed = reader.words.empty() ? sampling::AllowedTokens::all()
                                                      : sampling::AllowedTokens::of(reader.words),
                      .stop_tokens = followed.stop_tokens,
                      .guess_distribution = asked.is_residual ? &asked.drawn_from[asked.guesses.size()] : nullptr});
    const auto num_tokens = static_cast<std::int32_t>(followed.tokens.size());
    const bool is_whole = followed.num_computed + reader.num_rows == num_tokens;
    output_.sequences.push_back({.id = asked.id,
                                 .history = followed.tokens,
                                 .num_prompt_tokens = asked.num_prompt_tokens,
                                 .first_position = followed.num_computed,
                                 .num_tokens = reader.num_rows,
                                 .first_logits_row = reader.num_rows - (is_whole ? 1 : 0),
                                 .samples = is_whole,
                                 .block_tables = followed.kv.tables,
                                 .scores = {}});
    output_.num_tokens += reader.num_rows;
  }
  output_.num_whole = output_.sequences.size();
  output_.conversions = &kv_.cells().conversions();
  const std::span<runtime::SequenceResult> results = runner_.run(output_, tasks_);
  kv_.forget_conversions();
  for (std::size_t i = 0; i < readers_.size(); ++i) {
    if (results[i].error) readers_[i].asked->num_guesses = 0;  // not a number: whatever was guessed is
  }
}

// Readers that have all their guesses, or that have to read on in another call, leave.
void DraftModel::take_results() {
  const sched::ModelStepResult& sampled = runner_.sampled();
  std::size_t next = 0;
  for (std::size_t i = 0; i < readers_.size(); ++i) {
    Reader& reader = readers_[i];
    Followed& followed = *reader.followed;
    followed.num_computed += reader.num_rows;
    reader.num_rows = 0;
    if (std::cmp_less_equal(followed.num_computed, followed.num_text_tokens)) kv_.commit(followed.kv, followed.tokens, followed.num_computed);
    if (sampled.num_tokens[i] == 0) continue;
    const TokenId token = sampled.tokens[next++].token;
    std::vector<TokenId>& guesses = reader.asked->guesses;
    if (std::cmp_greater_equal(guesses.size(), reader.asked->num_guesses)) continue;
    if (token >= num_shared_tokens_) continue;
    guesses.push_back(token);
    if (std::cmp_equal(guesses.size(), reader.asked->num_guesses) || !find_allowed(reader)) continue;
    followed.tokens.push_back(token);
    reader.num_rows = 1;
  }
  std::erase_if(readers_, [](const Reader& reader) { return reader.num_rows == 0; });
}

void DraftModel::end(SequenceId id) {
  const auto found = followed_.find(id);
  if (found == followed_.end()) return;
  kv_.free(found->second.kv);
  followed_.erase(found);
}

}  // namespace kvasir
