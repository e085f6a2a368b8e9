#include "cli/foreign_name.h"

#include <algorithm>
#include <array>
#include <span>

namespace kvasir::cli {
namespace {

struct ForeignName {
  std::string_view name;
  std::string_view hint;
};

constexpr auto kForeignFlags = std::to_array<ForeignName>({
    {"--model-path", "the model comes first, or is --model"},
    {"--hf-repo", "a model of the hub is named hf:OWNER/NAME[:FILE]"},
    {"-hf", "a model of the hub is named hf:OWNER/NAME[:FILE]"},
    {"-hfr", "a model of the hub is named hf:OWNER/NAME[:FILE]"},
    {"--hf-file", "a model of the hub is named hf:OWNER/NAME[:FILE]"},
    {"-hff", "a model of the hub is named hf:OWNER/NAME[:FILE]"},
    {"--model-url", "a model of the hub is named hf:OWNER/NAME[:FILE]"},
    {"-mu", "a model of the hub is named hf:OWNER/NAME[:FILE]"},
    {"--hf-token", "the hub's token is the variable HF_TOKEN, or the file that its own client writes"},
    {"--token", "the hub's token is the variable HF_TOKEN, or the file that its own client writes"},
    {"--revision", "a revision is part of the name: hf:OWNER/NAME@REVISION"},
    {"--download-dir", "models are in the folder of the variable KVASIR_HOME"},
    {"--local-dir", "models are in the folder of the variable KVASIR_HOME"},
    {"--trust-remote-code", "no code of a model is ever run: leave it out"},
    {"--tokenizer", "the tokenizer is the model's own: leave it out"},
    {"--dtype", "weights keep their type; --quantize makes them smaller"},
    {"--torch-dtype", "weights keep their type; --quantize makes them smaller"},
    {"--quantization", "it is called --quantize here"},
    {"-q", "it is called --quantize here"},
    {"--load-in-4bit", "it is called --quantize q4_k here"},
    {"--load-in-8bit", "it is called --quantize q8_0 here"},
    {"--num-ctx", "it is called --ctx here"},
    {"--n-ctx", "it is called --ctx here"},
    {"--context-length", "it is called --ctx here"},
    {"--context-size", "it is called --ctx here"},
    {"--mmproj", "text is all that models are asked for here: leave it out"},
    {"--enforce-eager", "leave it out"},
    {"--device", "there is no GPU backend yet: leave it out"},
    {"--gpus", "there is no GPU backend yet: leave it out"},
    {"--main-gpu", "there is no GPU backend yet: leave it out"},
    {"-ngl", "there is no GPU backend yet: leave it out"},
    {"--gpu-layers", "there is no GPU backend yet: leave it out"},
    {"--n-gpu-layers", "there is no GPU backend yet: leave it out"},
    {"--tensor-parallel-size", "one machine serves a model: leave it out"},
    {"--gpu-memory-utilization", "--memory 8G bounds weights, KV and workspace together"},
    {"-fa", "attention is always fused: leave it out"},
    {"--flash-attn", "attention is always fused: leave it out"},
    {"-b", "the tokens of a step are --max-num-batched-tokens"},
    {"--batch-size", "the tokens of a step are --max-num-batched-tokens"},
    {"-ub", "the tokens of a step are --max-num-batched-tokens"},
    {"--ubatch-size", "the tokens of a step are --max-num-batched-tokens"},
    {"-np", "sequences at once are --max-num-seqs"},
    {"--parallel", "sequences at once are --max-num-seqs"},
    {"-ctk", "numbers in the KV cache are --kv-type; a budget is --kv-budget"},
    {"-ctv", "numbers in the KV cache are --kv-type; a budget is --kv-budget"},
    {"--cache-type-k", "numbers in the KV cache are --kv-type; a budget is --kv-budget"},
    {"--cache-type-v", "numbers in the KV cache are --kv-type; a budget is --kv-budget"},
    {"--kv-cache-dtype", "numbers in the KV cache are --kv-type; a budget is --kv-budget"},
    {"-f", "a prompt from a file is --file"},
    {"-i", "without a prompt `kvasir run MODEL` is a conversation"},
    {"--interactive", "without a prompt `kvasir run MODEL` is a conversation"},
    {"-cnv", "without a prompt `kvasir run MODEL` is a conversation"},
    {"-sys", "the system message is --system"},
    {"--system-prompt", "the system message is --system"},
    {"-no-cnv", "--raw continues a text without the chat template"},
    {"--no-conversation", "--raw continues a text without the chat template"},
    {"--repeat-penalty", "it is called --repetition-penalty here"},
    {"-s", "it is called --seed here"},
    {"--n-predict", "it is called --max-tokens here"},
    {"--predict", "it is called --max-tokens here"},
    {"--num-predict", "it is called --max-tokens here"},
    {"--max-new-tokens", "it is called --max-tokens here"},
    {"-r", "a text that ends the answer is --stop"},
    {"--reverse-prompt", "a text that ends the answer is --stop"},
    {"--api-key", "keys are in a file: kvasir keys add NAME --file KEYS, then serve --api-keys KEYS"},
    {"--api-prefix", "it is called --base-path here"},
    {"--root-path", "it is called --base-path here"},
    {"--alias", "it is called --served-model-name here"},
    {"--max-seq-len", "it is called --max-model-len here"},
    {"--keepalive", "a model stays loaded as long as its server runs"},
    {"--jinja", "chat templates are always used: leave it out"},
    {"--mlock", "weights are read in at the start: leave it out"},
    {"--no-mmap", "leave it out"},
    {"--embedding", "every server answers /v1/embeddings: leave it out"},
    {"--embeddings", "every server answers /v1/embeddings: leave it out"},
    {"--allowed-origins", "it is called --cors-origin here"},
});

constexpr auto kForeignVerbs = std::to_array<ForeignName>({
    {"keys remove", "a key is revoked by: kvasir keys revoke NAME --file KEYS"},
    {"keys delete", "a key is revoked by: kvasir keys revoke NAME --file KEYS"},
    {"keys rm", "a key is revoked by: kvasir keys revoke NAME --file KEYS"},
    {"eval perplexity", "perplexity is measured by: kvasir eval ppl MODEL --file TEXT"},
    {"ls", "models are listed by: kvasir list"},
    {"models", "models are listed by: kvasir list"},
    {"start", "a server is started by: kvasir serve MODEL"},
    {"server", "a server is started by: kvasir serve MODEL"},
    {"chat", "a conversation is started by: kvasir run MODEL"},
    {"generate", "one prompt is answered by: kvasir run MODEL PROMPT"},
    {"complete", "a text is continued by: kvasir run MODEL --raw PROMPT"},
    {"download", "a model is fetched by: kvasir pull NAME"},
    {"install", "a model is fetched by: kvasir pull NAME"},
    {"remove", "a model is deleted by: kvasir rm NAME"},
    {"delete", "a model is deleted by: kvasir rm NAME"},
    {"info", "a model is described by: kvasir show MODEL"},
    {"inspect", "a model is described by: kvasir show MODEL"},
    {"create", "a .gguf file is used by its path: kvasir run FILE.gguf"},
    {"cp", "a .gguf file is used by its path: kvasir run FILE.gguf"},
    {"import", "a .gguf file or a folder is used by its path: kvasir run FOLDER"},
    {"convert", "a folder with safetensors is used by its path: kvasir run FOLDER --quantize q4_k"},
    {"quantize", "weights are made smaller when they are loaded: kvasir run MODEL --quantize q4_k"},
    {"search", "models of the hub are found at its page, and named hf:OWNER/NAME"},
    {"login", "the hub's token is the variable HF_TOKEN, or the file that its own client writes"},
    {"embed", "a server answers /v1/embeddings: kvasir serve MODEL"},
    {"logs", "a server's log is its stderr; --access-log FILE has a line for each request"},
    {"status", "a server that runs is asked by: kvasir health"},
    {"push", "nothing is uploaded anywhere"},
    {"signin", "nothing is uploaded anywhere"},
    {"perplexity", "perplexity is measured by: kvasir eval ppl MODEL --file TEXT"},
    {"llama-bench", "speed is measured by: kvasir bench MODEL"},
    {"benchmark", "speed is measured by: kvasir bench MODEL"},
    {"run-batch", "a file of requests is answered by: kvasir batch MODEL IN OUT"},
});

std::string hint_of(std::string_view name, std::span<const ForeignName> names) {
  const auto found = std::ranges::find(names, name, &ForeignName::name);
  return found == names.end() ? std::string() : std::string(found->hint);
}

}  // namespace

std::string foreign_flag_hint(std::string_view flag) { return hint_of(flag, kForeignFlags); }
std::string foreign_verb_hint(std::string_view verb) { return hint_of(verb, kForeignVerbs); }

}  // namespace kvasir::cli
