#include "text/special_tokens.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "text/fim_texts.h"

namespace kvasir::text {
namespace {

using Texts = std::span<const std::string_view>;

constexpr auto kEndTexts = std::to_array<std::string_view>({
    "<|eot_id|>",             // Llama 3
    "<|eom_id|>",             // Llama 3 tools
    "<|end_of_text|>",        // Llama 3, Granite
    "<|im_end|>",             // ChatML: Qwen, SmolLM
    "<|end|>",                // Phi 3
    "<|endoftext|>",          // GPT-2, Qwen
    "<|return|>",             // Harmony
    "<|call|>",               // Harmony
    "<|flush|>",              // Solar Open
    "<|calls|>",              // Solar Open
    "</s>",                   // Llama 2, Mistral
    "<eos>",                  // Gemma
    "<end_of_turn>",          // Gemma 2 and 3
    "<turn|>",                // Gemma 4
    "<|tool_response>",       // Gemma 4
    "<EOT>",                  // CodeLlama
    "_<EOT>",                 // CodeLlama
    "[EOT]",                  // Kimi
    "[EOS]",                  // Kimi
    "<end_of_utterance>",     // SmolVLM
    "<｜end▁of▁sentence｜>",  // DeepSeek
    "[e~[",                   // MiniMax
});

// Harmony's channel markup carries text that clients want to see.
constexpr auto kHarmonyTexts =
    std::to_array<std::string_view>({"<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"});

class Collector {
 public:
  Collector(const VocabData& data, const std::function<TokenId(std::string_view)>& find)
      : data_(data), find_(find) {}

  SpecialTokens collect() {
    if (data_.fim_prefix == kNoToken) mark_first(kFimPrefixTexts);
    if (data_.fim_suffix == kNoToken) mark_first(kFimSuffixTexts);
    if (data_.fim_middle == kNoToken) mark_first(kFimMiddleTexts);
    add_fim_end(data_.fim_padding, kFimPaddingTexts);
    add_fim_end(data_.fim_repository, kFimRepositoryTexts);
    add_fim_end(data_.fim_separator, kFimSeparatorTexts);
    for (const std::string_view text : kEndTexts) {
      if (const TokenId id = find_(text); id != kNoToken) {
        found_.control.push_back(id);
        found_.end_of_generation.push_back(id);
      }
    }
    for (const std::string_view text : kHarmonyTexts) {
      if (const TokenId id = find_(text); id != kNoToken) found_.user_defined.push_back(id);
    }
    for (const TokenId id : {data_.eos, data_.eot, data_.eom}) add_end(id);
    for (const TokenId id : data_.extra_end_of_generation) add_end(id);
    drop_exceptions();
    std::ranges::sort(found_.end_of_generation);
    const auto repeats = std::ranges::unique(found_.end_of_generation);
    found_.end_of_generation.erase(repeats.begin(), repeats.end());
    return std::move(found_);
  }

 private:
  void add_end(TokenId id) {
    if (id != kNoToken) found_.end_of_generation.push_back(id);
  }

  // The first of the texts that is in the vocabulary becomes a control token.
  TokenId mark_first(Texts texts) {
    for (const std::string_view text : texts) {
      if (const TokenId id = find_(text); id != kNoToken) {
        found_.control.push_back(id);
        return id;
      }
    }
    return kNoToken;
  }

  void add_fim_end(TokenId named_by_file, Texts texts) {
    add_end(named_by_file != kNoToken ? named_by_file : mark_first(texts));
  }

  bool has(std::string_view text) const { return find_(text) != kNoToken; }

  void drop_end(std::string_view text, std::vector<TokenId>& becomes) {
    const TokenId id = find_(text);
    if (id == kNoToken) return;
    std::erase(found_.end_of_generation, id);
    becomes.push_back(id);
  }

  // Two texts mean something else in the company of others.
  void drop_exceptions() {
    const bool is_harmony = has("<|return|>") && (has("<|call|>") || has("<|calls|>"));
    const bool is_solar = has("<|flush|>") && (has("<|call|>") || has("<|calls|>"));
    if (is_harmony || is_solar) drop_end("<|end|>", found_.user_defined);  // ends a message, not the answer
    if (has("<|tool_response>") || has("<|plamo:eos|>")) drop_end("</s>", found_.normal);  // HTML
  }

  const VocabData& data_;
  const std::function<TokenId(std::string_view)>& find_;
  SpecialTokens found_;
};

}  // namespace

SpecialTokens find_special_tokens(const VocabData& data,
                                  const std::function<TokenId(std::string_view)>& find) {
  return Collector(data, find).collect();
}

}  // namespace kvasir::text
