// The names of pre-tokenisers, as GGUF files carry them.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>

#include "base/printable.h"
#include "text/pretokenizer.h"

namespace kvasir::text {
namespace {

using enum PretokenizerFamily;

struct NamedPretokenizer {
  std::string_view name;
  PretokenizerFamily family;
  bool keeps_known_words = false;
  bool adds_bos = false;
};

// Every name that GGUF files use for one of these families.
constexpr NamedPretokenizer kNames[] = {
    {"", kDefault},
    {"default", kDefault},
    {"a.x-4.0", kGpt2},
    {"exaone4", kGpt2},
    {"gigachat", kGpt2},
    {"gpt-2", kGpt2},
    {"granite-docling", kGpt2},
    {"jais", kGpt2},
    {"jina-de", kGpt2},
    {"jina-es", kGpt2},
    {"mellum", kGpt2},
    {"mpt", kGpt2},
    {"olmo", kGpt2},
    {"phi-2", kGpt2},
    {"trillion", kGpt2},
    {"codeshell", kSmolLm},
    {"command-r", kSmolLm},
    {"exaone", kSmolLm},
    {"mellum2", kSmolLm},
    {"minerva-7b", kSmolLm},
    {"refact", kSmolLm},
    {"smollm", kSmolLm},
    {"starcoder", kSmolLm},
    {"chatglm-bpe", kLlama3},
    {"dbrx", kLlama3},
    {"smaug-bpe", kLlama3},
    {"glm4", kLlama3, true},
    {"glm5", kLlama3, true},
    {"falcon-h1", kLlama3, true, true},
    {"falcon3", kLlama3, true, true},
    {"jina-v5-nano", kLlama3, true, true},
    {"lfm2", kLlama3, true, true},
    {"llama-bpe", kLlama3, true, true},
    {"llama-v3", kLlama3, true, true},
    {"llama3", kLlama3, true, true},
    {"midm-2.0", kLlama3, true, true},
    {"pixtral", kLlama3, true, true},
    {"deepseek-r1-qwen", kQwen2},
    {"f2llmv2", kQwen2},
    {"grok-2", kQwen2},
    {"hunyuan", kQwen2},
    {"kormo", kQwen2},
    {"megrez", kQwen2},
    {"qwen2", kQwen2},
    {"solar-open", kQwen2},
    {"stablelm2", kQwen2},
    {"jina-v2-de", kGpt2},
    {"jina-v2-es", kGpt2},
    {"jina-v1-en", kGpt2},
    {"jina-v2-code", kGpt2},
    {"modern-bert", kGpt2},
    {"roberta-bpe", kGpt2},
    {"chameleon", kChameleon, false, true},
    {"afmoe", kAfmoe},
    {"tekken", kTekken, true, true},
    {"gpt-4o", kGpt4o},
    {"kanana2", kGpt4o},
    {"llama4", kGpt4o},
    {"minimax-m2", kGpt4o},
    {"talkie", kGpt4o},
    {"granite-embed-multi-97m", kGpt4o, true},
    {"qwen35", kQwen35},
    {"bailingmoe", kQwen2},
    {"bailingmoe2", kQwen2},
    {"llada-moe", kQwen2},
    {"seed-coder", kSeedCoder},
    {"ufakzeka", kUfakzeka},
    {"minicpm5", kMiniCpm5, true},
    {"laguna", kLaguna},
    {"deepseek-llm", kDeepSeekLlm},
    {"deepseek-coder", kDeepSeekCoder},
    {"deepseek-v3", kDeepSeekV3},
    {"hunyuan-dense", kDeepSeekV3},
    {"hy_v4", kDeepSeekV3},
    {"joyai-llm", kDeepSeekV3},
    {"falcon", kFalcon},
    {"bloom", kBloom},
    {"gpt3-finnish", kBloom},
    {"poro-chat", kBloom},
    {"viking", kViking},
    {"kimi-k2", kKimiK2},
    {"exaone-moe", kExaoneMoe},
    {"jais-2", kJais2},
    {"cohere2moe", kTinyAya},
    {"tiny_aya", kTinyAya},
    {"superbpe", kSuperBpe},
    {"spark2_5", kSpark},
    {"youtu", kYoutu, true},
};

}  // namespace

Result<Pretokenizer> Pretokenizer::create(std::string_view name) {
  const auto* const named = std::ranges::find(kNames, name, &NamedPretokenizer::name);
  if (named == std::end(kNames)) {
    return make_error(ErrorKind::kBadFile,
                      fmt::format("tokenizer.ggml.pre '{}' is not a known pre-tokenizer (gpt-2, llama-bpe, "
                                  "qwen2, tekken, gpt-4o, deepseek-v3 are among the known ones)",
                                  printable(name)));
  }
  Pretokenizer pretokenizer(named->family);
  pretokenizer.keeps_known_words_ = named->keeps_known_words;
  pretokenizer.adds_bos_ = named->adds_bos;
  return pretokenizer;
}

}  // namespace kvasir::text
