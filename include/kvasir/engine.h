// The engine: a loaded model and a thread that runs requests on it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "kvasir/adapter_type.h"
#include "kvasir/engine_snapshot.h"
#include "kvasir/ids.h"
#include "kvasir/kv_learning_stats.h"
#include "kvasir/request.h"
#include "kvasir/result.h"
#include "kvasir/shadow_stats.h"
#include "kvasir/waiting_policy.h"

namespace kvasir {

namespace text {
class Tokenizer;
class ChatTemplate;
}  // namespace text
namespace kv {
class ForecastLearner;
class PolicyJournal;
}  // namespace kv
class StepTurn;

// How keys and values are written: 12 bits with a scale per token and head (f16 where a head's size is no
// multiple of 64), or floats.
enum class KvCacheType : std::uint8_t { kQ12, kF16, kF32 };

// How guesses of a draft model are checked.
enum class DraftRule : std::uint8_t {
  kMatch,     // a guess counts when it is what is sampled in its place: the same bits as without guesses
  kResidual,  // by residual sampling where a request is sampled without a seed: the same distribution, more guesses count
};

// Changes a model's weights for the requests that name it (Hu et al. 2021, "LoRA").
struct AdapterConfig {
  std::string name;
  std::string path;  // a folder of PEFT or a GGUF file
  float scale = 1.0f;
};

struct EngineConfig {
  std::string model_path;                 // a .gguf file, or a folder with config.json and safetensors
  std::string model_name = {};            // the user's name for it, for the KV log; empty: the file's own
  std::int32_t num_threads = 0;           // 0: physical cores this process may use
  std::int32_t max_model_len_tokens = 0;  // 0: the model's trained length, as far as memory allows
  std::int32_t max_num_seqs = 16;
  std::int32_t max_num_batched_tokens = 0;  // 0: 512, and up to 2048 for a mixture of experts
  std::int64_t memory_bytes = 0;     // weights, KV, workspace; 0: half of what is free, more for a large model
  std::int64_t reserved_bytes = 0;   // of that budget, for what the engine's user does beside it
  // The program itself takes this part of that budget. 0: it is measured, and other engines of the process count too.
  std::int64_t process_bytes = 0;
  std::int64_t kv_cache_tokens = 0;  // 0: derived from the memory budget
  KvCacheType kv_cache_type = KvCacheType::kQ12;
  // Block weights as bytes with a scale per 256 inputs: faster prompts, less close to the file.
  bool fast = false;
  // Float matrices are quantised while they are loaded: "q8_0", "q4_0", "q4_k", "mxfp4", "bf16"; empty: as they are.
  std::string quantize = {};
  // Folder for a copy of the weights as the kernels read them, which later starts map instead of packing them again.
  // Empty or absent: none is kept.
  std::optional<std::string> packed_cache_directory = {};
  // Whether BOS and EOS (CLS and SEP) stand around a text, of a GGUF file; absent: as the file says. An encoder's file
  // that does not say is refused.
  std::optional<bool> add_special_tokens = {};
  std::int64_t guide_memory_bytes = std::int64_t{64} << 20;  // of compiled guides
  bool kv_calibration = true;  // uses the file of `kvasir calibrate-kv` beside the model's
  bool kv_key_components = true;  // uses its statistics of keys beside the model's
  // Another such file, of the same model, whose forecast of attention counts instead; empty: that one's.
  std::string kv_forecast_path = {};
  bool prefix_cache = true;
  // Texts whose KV all tenants share, as the beginning of a prompt or as the system message of a chat.
  std::vector<std::string> public_prefixes;
  // Requests that generate nothing and leave no cached prefix run layer by layer, with the keys and values of
  // one layer at a time, whatever the number of layers; the results are the same, bit for bit. False: as all
  // others.
  bool prefill_only = true;
  std::int32_t max_chunk_tokens = 0;  // of one sequence in one step; 0: the whole step
  // How long a step may take that computes prompts beside streams: they stall no longer. 0: as it comes.
  double max_step_ms = 0.0;
  std::int32_t max_queued_requests = 256;
  // Prompt tokens that may wait, in times what the KV cache holds, so that a queue of long prompts is short;
  // 0: any number.
  double max_queued_kv_caches = 0.0;
  // A request that has not begun by then ends with kUnavailable, unless it says itself how long it waits; 0:
  // it waits.
  std::int32_t queue_timeout_ms = 0;
  // An idle engine waits so long after a request for others that its first step can take along.
  std::int32_t gather_ms = 0;
  WaitingPolicy waiting_policy = WaitingPolicy::kPriority;
  // After so long in the queue a request counts as of the next better class, and again; 0: never.
  std::int32_t ageing_ms = 0;
  // The limit for the first token of requests of class 0 and better, and thirty times as long for the classes
  // behind. A request that would miss it because of other requests is refused at once; 0: none is.
  std::int32_t ttft_target_ms = 0;
  // Guesses what comes next from the text so far, and checks several guesses in a step where that is faster. Tokens and
  // log-probabilities are the same bits.
  bool speculates = false;
  std::int32_t max_draft_tokens = 15;  // guesses of a sequence in a step, at most; 1 to 15
  // Guesses may come from these beside a draft model: the text so far, answers that have ended, and a file of
  // `kvasir draft train`.
  bool drafts_from_text = true, drafts_from_answers = true, drafts_from_heads = true;
  // That file. Empty: the one beside the model's, or the program's own for it, where there is one.
  std::string draft_heads_path = {};
  // A small model with the same tokens guesses too, where that is faster. Its memory is part of the budget. Empty: none.
  std::string draft_model_path = {};
  DraftRule draft_rule = DraftRule::kMatch;
  // Adapters (LoRA) that requests may name from the start.
  std::vector<AdapterConfig> adapters = {};
  // The type of all adapters.
  AdapterType adapter_type = AdapterType::kF16;
  // Adapters may take so much, those from the start and the floats of one that is read included. 0: no others can be
  // loaded.
  std::int64_t adapter_memory_bytes = 0;
  std::string device = {};    // "cpu", "guarded", "cuda:0"; empty: KVASIR_DEVICE or the processor
  // A GPU gives so many bytes to weights, KV and workspace together, or where that is 0 this share of all it has.
  std::int64_t gpu_memory_bytes = 0;
  double gpu_memory_share = 0.9;
  // Layers whose matrices a GPU keeps, from the first on; the processor keeps the others' and multiplies with them. At most
  // all. -1: as many as fit beside the KV of a text of usual length.
  std::int32_t gpu_layers = -1;
  // Called by the engine's thread when a device gives no results any more, with the reason in one line. Every request has
  // ended with an error by then, and new ones are refused.
  std::function<void(const std::string&)> on_device_lost = {};
  std::string isa;            // "ref", "avx2", "neon"; empty: KVASIR_ISA or the best
  std::string chat_template;  // overrides the model's own when not empty
  // Records the actions of KV policies on every request; null: no records. Borrowed: it must outlive the
  // engine.
  kv::PolicyJournal* kv_journal = nullptr;
  // Learns the forecast of attention from requests, and serves it to those that come; null: nothing is learned. Borrowed: it
  // must outlive the engine.
  kv::ForecastLearner* kv_learner = nullptr;
  // Engines with the same one run one step at a time between them; null: the engine has the cores for itself.
  std::shared_ptr<StepTurn> step_turn = {};
};

// Whether EngineConfig::device names one that is there. Errors: kUsage for a name that is none, kMachine.
Status check_device(const std::string& device);

// Layers that keep the same tokens.
struct KvGroupInfo {
  std::int64_t bytes_per_token = 0;  // keys and values of all the group's layers
  std::int32_t window_tokens = 0;    // 0: all tokens are kept
  std::int32_t num_layers = 0;
  std::int32_t num_kv_heads = 0;  // of each
};

struct ModelInfo {
  std::string name;  // general.name, printable
  std::string architecture;
  std::string quantization;  // e.g. "Q4_1"
  std::int64_t num_parameters = 0;
  std::int64_t num_layer_parameters =
      0;  // without embedding, head and the experts a token does not use: about the products of one prompt token
  std::int64_t weight_bytes = 0;
  std::string device = "cpu";             // EngineConfig::device, or what KVASIR_DEVICE says
  std::string_view packed_cache = "off";  // "hit": the weights are a packed copy's; "written": one was made
  std::vector<KvGroupInfo> kv_groups;
  bool has_key_components = false;  // statistics of its keys are there, for the KV format k2pv2
  std::int32_t num_layers = 0;
  std::int32_t hidden_size = 0;
  // Each token sees those behind it too: there are embeddings, or scores, and no text comes out.
  bool is_encoder = false;
  Pooling pooling = Pooling::kMean;  // as the file says, kRank where it has a classifier; never kOfModel
  bool has_pooling = false;  // the file says how embeddings are pooled, or the model is made for them
  // What the model was trained to read before a text to embed, by name, such as "query" and "document".
  std::map<std::string, std::string> embedding_prompts = {};
  std::string default_prompt_name = {};  // of the one where nobody names one; empty: none
  std::int32_t embedding_size = 0;   // floats of an embedding, at most
  std::int32_t num_labels = 0;       // logits of Pooling::kRank; 0: the model has no classifier
  std::int32_t num_token_types = 1;  // of Request::prompt_token_types
  std::int32_t vocab_size = 0;             // ids that have a token: without the padding some models have
  std::int32_t context_length_tokens = 0;  // what the model was trained for
  std::int32_t max_model_len_tokens = 0;   // the most that this engine accepts: prompt + completion
  // The advice of the model's makers for requests that say nothing, else usual_sampling(). The engine
  // itself takes requests as they are.
  SamplingParams default_sampling;
  // A line each: guesses about the file, and what of it is passed over although it may matter.
  std::vector<std::string> notices;
};

// Upper bounds of EngineStats's counts of steps; one more count is of those above all.
inline constexpr std::array<double, 12> kStepSecondsBounds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                                              0.075, 0.1,    0.25,  0.5,  1.0,   2.5};
inline constexpr std::array<double, 9> kStepSequencesBounds = {1, 2, 4, 8, 16, 32, 64, 128, 256};
// Likewise of masks.
inline constexpr std::array<double, 13> kMaskSecondsBounds = {1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4,
                                                              2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2};

struct KvFormatBytes {
  std::string_view format;
  std::int64_t bytes = 0;
};

struct GuideRefusals {
  std::string keyword;  // of JSON Schema; "regex", "choice", "text", "grammar"; "other"
  std::int64_t count = 0;
};

// Guesses of tokens come from the request's text, from answers that had ended, from a draft model, or from what was learned
// of the model beforehand; in a benchmark they are replayed.
inline constexpr std::array<std::string_view, 5> kDrafters = {"text", "answers", "model", "heads", "replay"};
struct DraftCounts {
  std::int64_t num_drafted = 0;
  std::int64_t num_accepted = 0;
};

// Steps that ran guesses and nothing else beside their streams, as they were expected to be and as they were.
struct DraftEstimates {
  std::int64_t num_steps = 0;
  double num_tokens_expected = 0.0;
  std::int64_t num_tokens = 0;
  double seconds_expected = 0.0, seconds = 0.0;  // without the draft model's
};

// Choices of requests that name an adapter.
struct AdapterUse {
  std::string name;
  std::int64_t num_choices = 0;  // that have not ended
  std::int64_t num_running = 0;  // .. and ran in the last step
};

struct EngineStats {
  std::int64_t num_running = 0;
  std::int64_t num_running_tokens = 0;  // prompts and answers so far
  std::int64_t num_waiting = 0;
  double oldest_waiting_ms = 0.0;  // how long the one has waited that waits longest
  std::int64_t num_requests_finished = 0;
  std::int64_t num_requests_cancelled = 0;
  std::int64_t num_requests_failed = 0;
  std::int64_t num_requests_rejected = 0;
  std::int64_t num_requests_too_late = 0;      // of those rejected: the first token would have come too late
  std::int64_t num_requests_beyond_queue = 0;  // of those rejected: the queue was full
  std::int64_t num_requests_expired = 0;       // choices that did not start in the time they had
  std::int64_t num_prompt_tokens = 0;
  std::int64_t num_cached_prompt_tokens = 0;
  std::int64_t num_generated_tokens = 0;
  std::int64_t num_preemptions = 0;
  std::int64_t num_guides_compiled = 0;
  std::int64_t num_guides_known = 0;    // asked for again while they were kept
  std::int64_t num_guides_refused = 0;  // wrong, or not supported
  std::vector<GuideRefusals> guide_refusals;  // of those, by keyword
  double guide_compile_seconds_total = 0.0;
  double guide_mask_seconds_total = 0.0;  // of finding the tokens that guides allow, one mask a step and choice
  std::array<std::int64_t, kMaskSecondsBounds.size() + 1> masks_by_seconds{};
  std::int64_t guide_bytes = 0;  // of compiled guides that are kept or in use
  std::int64_t num_adapters = 0;
  std::int64_t adapter_bytes = 0;      // of those, and of others that requests hold
  std::int64_t num_adapter_loads = 0;  // those of the start included
  std::int64_t num_adapter_evictions = 0;  // idle ones that left memory for another
  std::int64_t num_adapter_reloads = 0;    // .. and came back
  std::vector<AdapterUse> adapters;    // that choices use, by name
  std::int64_t num_guided_answers = 0;      // choices that ended as texts of their guide
  std::int64_t num_guided_answers_cut = 0;  // choices that ended for want of tokens
  std::int64_t num_forced_tokens = 0;       // that came where a guide allowed no other
  std::int64_t num_draft_tokens = 0;                  // guesses that steps have run
  std::int64_t num_draft_tokens_accepted = 0;         // .. and that were what was sampled
  std::array<DraftCounts, kDrafters.size()> drafts_by{};  // the same by drafter
  double draft_model_seconds_total = 0.0;                 // that the draft model took
  DraftEstimates draft_estimates;
  std::vector<ShadowStats> shadows;  // where answers are scored again
  std::optional<KvLearningStats> kv_learning;  // where the forecast of attention is learned from requests
  std::int64_t num_kv_policies_given_up = 0;  // sequences kept exact: their lossy cells left no room to go on
  std::int64_t num_steps = 0;
  std::int64_t num_stepped_sequences = 0;  // over all steps: those that each ran something of
  std::int64_t skipped_weight_bytes =
      0;  // that steps left unread: most of the head where one token is wanted, and experts without tokens
  std::int64_t kv_blocks_total = 0;  // that there is room for as computed; more of those made coarser
  std::int64_t kv_blocks_used = 0;   // referenced by a sequence
  std::int64_t kv_bytes_total = 0;
  std::int64_t kv_bytes_used = 0;              // held by sequences
  std::int64_t kv_bytes_peak = 0;              // the most that sequences have held at once
  std::vector<KvFormatBytes> kv_format_bytes;  // held, or free and cached, by format
  std::int64_t num_kv_evictions = 0;           // cached blocks that gave way to others
  // At once, of what is kept between the layers of requests that run layer by layer.
  std::int64_t hidden_bytes_peak = 0;
  std::int64_t prefix_queries_tokens = 0;
  std::int64_t prefix_hits_tokens = 0;
  std::int64_t peak_rss_bytes = 0;
  double step_seconds_total = 0.0;
  std::array<std::int64_t, kStepSecondsBounds.size() + 1> steps_by_seconds{};
  std::array<std::int64_t, kStepSequencesBounds.size() + 1> steps_by_sequences{};
};

// Reports the phase of load(), for a progress line; fraction in [0, 1]. It runs on the thread that loads.
// False asks load() to stop.
using LoadProgress = std::function<bool(const std::string& phase, double fraction)>;

// A conversation as chat templates read it. Each text is JSON.
struct ChatPrompt {
  std::string messages;         // an array of objects: role, content and what else the template knows
  std::string tools;            // an array; empty: none
  std::string template_kwargs;  // an object, variables for the template such as enable_thinking; empty: none
  bool add_generation_prompt = true;  // end where the answer begins
};

// A request and where its news go.
struct Submission {
  Request request;
  OutputSink sink;
};

using AdapterNames = std::shared_ptr<const std::vector<std::string>>;

// Thread safety: every member may be called from any thread.
class Engine {
 public:
  // Maps the file, packs the weights, plans memory and starts the engine thread.
  // Errors: kBadFile (the model), kMachine (memory), kUsage (configuration), kCancelled (by `progress`).
  static Result<std::unique_ptr<Engine>> load(const EngineConfig& config, const LoadProgress& progress = {});

  virtual ~Engine() = default;

  virtual const ModelInfo& model_info() const = 0;
  // Null when the file carries no tokenizer: then only token-id prompts work and no text comes back.
  virtual const text::Tokenizer* tokenizer() const = 0;
  // Null when the model has no chat template and none was given.
  virtual const text::ChatTemplate* chat_template() const = 0;

  // Text as token ids: BOS where the model wants one, control tokens in the text as plain text. Error:
  // kBadFile when the file carries no tokenizer.
  Result<std::vector<TokenId>> encode(std::string_view text) const;

  // The bytes of a whole text, control tokens left out unless render_special asks for their text. Errors:
  // kBadFile when the file carries no tokenizer, kUsage for an id outside the vocabulary.
  Result<std::string> decode(std::span<const TokenId> token_ids, bool render_special = false) const;

  // A conversation through the model's chat template; what its texts look like never becomes a control token.
  // Errors: kBadFile when the file carries no tokenizer, kUsage when there is no template and for what it
  // refuses, kUnmet for a limit of its rendering.
  Result<std::vector<TokenId>> encode_chat(const ChatPrompt& prompt) const;

  // Queues all requests, so that the scheduler meets them in one step, or none of them; ids in their order.
  // Outputs come through each `sink` on the engine thread until one has request_finished set; the sink is not
  // called after that. Errors at once, without a sink call: kUsage (invalid parameters, token ids outside the
  // vocabulary, empty prompt), kUnmet (prompt + max_tokens beyond the context), kUnavailable (queue full, or
  // the first token would come too late), and prepare_guide()'s.
  virtual Result<std::vector<RequestId>> submit(std::vector<Submission> submissions) = 0;
  // One alone.
  Result<RequestId> submit(Request request, OutputSink sink);
  // Queues them from the first on, in one step, while the queue has room for two more: a place is left to
  // others. The first alone is let in or refused as by submit(). One id for each that came in.
  virtual Result<std::vector<RequestId>> submit_some(std::vector<Submission> submissions) = 0;
  // For an answer whose requests come piece by piece: until what it returns is destroyed, drain() waits for
  // more that are is_admitted. Must not outlive the engine.
  virtual std::shared_ptr<void> keep_open() = 0;

  // Compiles a guide for callers that must not wait for it, as submit() does. The sink is called once: before this
  // returns where the guide is known or wrong at a glance, else on another thread. After a request to stop it may get
  // kCancelled. Errors: kUsage for a guide that is wrong or that no text fulfils, kUnmet for one that is not supported
  // or beyond a limit, kUnavailable.
  using GuideSink = std::function<void(Result<CompiledGuide>)>;
  virtual void prepare_guide(const Guide& guide, std::string_view tenant, std::stop_token stop, GuideSink sink);

  // Adapters that requests may name, in the order in which they were loaded. Never null.
  virtual AdapterNames adapters() const;
  // Reads and packs an adapter on the calling thread. While there is no room, those of other calls that no request uses
  // leave memory, the one that was used longest ago first. Requests may still name them. Requests that are submitted afterwards may name it; those that run
  // with another of its name keep that one. Errors: kBadFile, kUsage (it takes more than there is for adapters),
  // kUnavailable (others leave no room now), kUnmet (the device runs none), kMachine.
  virtual Status load_adapter(const AdapterConfig& adapter);
  // Requests that are submitted afterwards do not find it. Its memory is back when the last that runs with it has ended.
  // Error: kNotFound.
  virtual Status unload_adapter(std::string_view name);
  // Brings an adapter back to memory for callers that must not wait for it, as submit() does. The sink is called once: before
  // this returns where it is there, else on another thread. After a request to stop it may get kCancelled. Errors: kUsage
  // where none is called so, and load_adapter()'s.
  using AdapterSink = std::function<void(Result<AdapterHold>)>;
  virtual void prepare_adapter(std::string_view name, std::stop_token stop, AdapterSink sink);

  // Lets a KV policy serve again that shadows have held back. Errors: kNotFound (it is not), kUsage (too early).
  virtual Status resume_kv_policy(std::string_view policy);

  // Requests that `broken` covers and that run keep their keys and values as they are from the next step on, and those that
  // wait get no policy. Their usage says that they were downgraded.
  virtual void freeze_kv_policy(const KvPromise& broken);

  // Ends a request in any state; its sink gets a final output with kCancelled for each unfinished choice.
  // Unknown or finished ids are ignored.
  virtual void cancel(RequestId id) = 0;

  virtual EngineStats stats() const = 0;

  // Takes a snapshot between two steps. The sink is destroyed without a call when the engine ends first.
  virtual void inspect(EngineSnapshotSink sink) = 0;

  // Stops taking requests, lets the running ones finish for at most `timeout_ms`, then cancels the rest. When
  // it returns, every sink has been destroyed.
  virtual void drain(std::int64_t timeout_ms) = 0;
};

}  // namespace kvasir
