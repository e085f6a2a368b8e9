// kvasir run: answers one prompt, or talks.
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <utility>

#include "base/json_writer.h"
#include "base/printable.h"
#include "cli/answer_view.h"
#include "cli/blocked_signals.h"
#include "cli/chat/chat.h"
#include "cli/draft_options.h"
#include "cli/engine_options.h"
#include "cli/fetched_model.h"
#include "cli/generation.h"
#include "cli/guide_options.h"
#include "cli/input_file.h"
#include "cli/model_session.h"
#include "cli/prompt.h"
#include "cli/prompt_progress.h"
#include "cli/sampling_options.h"
#include "cli/standard_output.h"
#include "cli/verb.h"
#include "engine/kv_params.h"

namespace kvasir::cli {
namespace {

struct RunOptions {
  std::string model;
  std::optional<std::string> prompt;
  std::string file;
  std::string system;
  bool raw = false;
  bool special = false;  // as it is anyway
  bool no_special = false;
  bool plain = false;
  bool no_history = false;
  SamplingOptions sampling;
  KvParams kv;
  GuideOptions guide;
  EngineOptions engine;
};

// Why the answer ended, as the guide sees it.
std::string_view end_of(const Generation& generation) {
  if (generation.finish_reason != FinishReason::kStop) return name_of(generation.finish_reason);
  if (!generation.stop_string.empty()) return "stop_string";
  return generation.stop_token != kNoToken ? "stop_token" : "guide";
}

std::string_view kind_of(const GuideOptions& guide) {
  if (!guide.schema_file.empty()) return "schema";
  if (!guide.grammar_file.empty()) return "grammar";
  return guide.regex.empty() ? "choice" : "regex";
}

// Nothing: a person is there to talk to.
Result<std::optional<std::string>> find_prompt(const RunOptions& options, const GlobalOptions& globals) {
  if (options.prompt) return options.prompt;
  if (!options.file.empty()) {
    KVASIR_TRY(std::string text, read_input_file(options.file));
    return without_final_newline(std::move(text));
  }
  if (::isatty(STDIN_FILENO) == 0) {
    KVASIR_TRY(std::string text, read_standard_input());
    text = without_final_newline(std::move(text));
    if (text.empty()) return make_error(ErrorKind::kUsage, "prompt: the standard input is empty", "prompt");
    return text;
  }
  if (globals.json)
    return make_error(ErrorKind::kUsage, "--json: needs a prompt, not a conversation", "json");
  return std::optional<std::string>();
}

// `num_tokens` came in fewer steps than there are of them.
void add_speculation(JsonWriter& json, const EngineStats& stats, std::int64_t num_tokens) {
  const std::int64_t num_steps = num_tokens - stats.num_draft_tokens_accepted;
  json.key("speculation").begin_object().member("steps", num_steps).member("drafted", stats.num_draft_tokens);
  json.member("accepted", stats.num_draft_tokens_accepted);
  json.member("tokens_per_step", num_steps > 0 ? static_cast<double>(num_tokens) / static_cast<double>(num_steps) : 0.0);
  json.key("drafters").begin_array();
  for (std::size_t i = 0; i < kDrafters.size(); ++i) {
    const auto& [num_drafted, num_accepted] = stats.drafts_by.at(i);
    if (num_drafted == 0) continue;
    json.begin_object().member("name", kDrafters.at(i)).member("drafted", num_drafted).member("accepted", num_accepted);
    json.member("ms", kDrafters.at(i) == "model" ? 1000.0 * stats.draft_model_seconds_total : 0.0).end_object();
  }
  json.end_array();
  const DraftEstimates& estimates = stats.draft_estimates;
  json.key("estimates").begin_object().member("steps", estimates.num_steps).member("tokens", estimates.num_tokens);
  json.member("tokens_expected", estimates.num_tokens_expected).member("ms", 1000.0 * estimates.seconds);
  json.member("ms_expected", 1000.0 * estimates.seconds_expected).end_object();
  json.end_object();
}

std::string generation_json(const RunOptions& options, const ModelSession& session,
                            const Generation& generation) {
  const EngineStats stats = session.engine->stats();
  std::string out;
  JsonWriter json(out, JsonWriter::Style::kPretty);
  json.begin_object()
      .member("model", options.model)
      .member("device", session.engine->model_info().device)
      .member("prompt_tokens", generation.usage.prompt_tokens)
      .member("completion_tokens", generation.usage.completion_tokens)
      .member("text", generation.text)
      .key("token_ids")
      .begin_array();
  for (TokenId id : generation.token_ids) json.value(id);
  json.end_array().member("finish_reason", name_of(generation.finish_reason));
  json.key("timing")
      .begin_object()
      .member("load_ms", session.load_ms)
      .member("packed_cache", session.engine->model_info().packed_cache)
      .member("ttft_ms", generation.ttft_ms)
      .member("prefill_tokens_per_s", generation.prefill_tokens_per_s)
      .member("decode_tokens_per_s", generation.decode_tokens_per_s)
      .end_object();
  json.key("memory")
      .begin_object()
      .member("peak_bytes", stats.peak_rss_bytes)
      .member("kv_bytes", stats.kv_bytes_peak)
      .member("kv_bytes_share", generation.usage.kv_bytes_share)
      .end_object();
  if (const KvUsage& kv = generation.usage.kv; kv.full_bytes > 0) {
    json.key("kv").begin_object().member("bytes", kv.bytes).member("share", kv.share());
    json.member("dropped", kv.num_dropped_cells).member("dropped_share", kv.dropped_share()).end_object();
  }
  if (options.engine.speculate != "off") add_speculation(json, stats, generation.usage.completion_tokens);
  if (has_guide(options.guide)) {
    json.key("guide").begin_object().member("kind", kind_of(options.guide));
    json.member("forced_tokens", generation.usage.forced_tokens).member("ended_by", end_of(generation)).end_object();
  }
  json.end_object();
  return out;
}

// Answers a prompt in the form that is asked for.
Result<int> answer_prompt(const RunOptions& options, const GlobalOptions& globals, const std::string& prompt,
                          const std::optional<Guide>& guide, ModelSession& session, BlockedSignals& signals) {
  Request request;
  if (options.raw) {
    request.prompt_token_ids = encode_raw(*session.engine, prompt, !options.no_special);
  } else {
    std::vector<text::ChatMessage> messages;
    if (!options.system.empty()) messages.push_back({"system", options.system});
    messages.push_back({"user", prompt});
    KVASIR_TRY(request.prompt_token_ids, encode_conversation(*session.engine, messages));
  }
  request.kv = options.kv;
  request.adapter = adapter_of(*session.engine);
  request.guide = guide;
  request.sampling = make_sampling_params(options.sampling, std::ssize(request.prompt_token_ids),
                                          session.engine->model_info().max_model_len_tokens);
  if (options.sampling.max_tokens > request.sampling.max_tokens) {
    say(fmt::format("kvasir: --max-tokens: {} was cut to {}, what the context of {} tokens has left (--ctx)",
                    *options.sampling.max_tokens, *request.sampling.max_tokens,
                    session.engine->model_info().max_model_len_tokens));
  }
  if (request.guide && !options.raw) allow_reasoning(*session.engine, request);
  // A raw text is not Markdown, and neither is its continuation.
  const auto view = make_answer_view(choose_answer_format(options.plain || options.raw));
  PromptProgress progress(globals.quiet);
  const TextSink on_text = [&](std::string_view piece) {
    progress.clear();
    if (!globals.json) view->write(piece);
  };
  KVASIR_TRY(const Generation generation,
             generate(*session.engine, std::move(request), signals, on_text, progress.sink()));
  progress.clear();
  const int exit_code = generation.finish_reason == FinishReason::kCancelled ? kExitInterrupted : kExitDone;
  if (globals.json) return print_document(generation_json(options, session, generation), exit_code);
  view->finish();
  if (!globals.quiet) {
    say(fmt::format("prompt {} tokens at {:.1f}/s, answer {} tokens at {:.1f}/s, first after {:.0f} ms",
                    generation.usage.prompt_tokens, generation.prefill_tokens_per_s,
                    generation.usage.completion_tokens, generation.decode_tokens_per_s, generation.ttft_ms));
    if (const auto unmet = unmet_budget(options.kv, generation.usage.kv, 1)) say("kvasir: --kv-budget: " + *unmet);
  }
  return finish_output(exit_code);
}

int talk(const RunOptions& options, const GlobalOptions& globals, ModelSession& session,
         BlockedSignals& signals) {
  Chat chat(*session.engine, signals,
            {.model = options.model,
             .system = options.system,
             .parameters = {.sampling = options.sampling, .kv = options.kv},
             .format = choose_answer_format(options.plain || options.raw),
             .raw = options.raw,
             .parse_special = !options.no_special,
             .keeps_history = !options.no_history,
             .quiet = globals.quiet,
             .verbose = globals.verbose});
  return chat.run();
}

Result<int> run(RunOptions options, const GlobalOptions& globals) {
  KVASIR_CHECKED(check_sampling(options.sampling));
  KVASIR_TRY(const EngineConfig config, make_engine_config(options.engine, globals));
  if (config.adapters.size() > 1) {
    return make_error(ErrorKind::kUsage, fmt::format("--lora: run answers with one adapter, {} are given", config.adapters.size()),
                      "lora");
  }
  KVASIR_TRY(const std::optional<Guide> guide, make_guide(options.guide));
  KVASIR_CHECKED(check_model_name(options.model));  // first: a prompt may wait for a pipe
  KVASIR_TRY(const std::optional<std::string> prompt, find_prompt(options, globals));
  if (guide && !prompt) {
    return make_error(ErrorKind::kUsage, "--schema, --regex, --grammar, --choice: need a prompt, not a conversation", "schema");
  }
  KVASIR_CHECKED(fetch_if_missing(options.model, globals));
  BlockedSignals signals({SIGINT});
  KVASIR_TRY(ModelSession session,
             open_session(options.model, config, globals, &signals, options.engine.kv_log));
  if (session.engine->tokenizer() == nullptr) {
    return make_error(
        ErrorKind::kBadFile,
        fmt::format("{}: the file has no tokenizer, so it can be measured (bench) but not asked",
                    options.model));
  }
  if (session.engine->model_info().is_encoder) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("{}: it is an encoder, which generates no text: kvasir serve answers /v1/embeddings "
                                  "and /v1/rerank with it",
                                  printable_line(options.model)),
                      "model");
  }
  const bool may_change = !prompt;  // by /set
  if (!config.kv_forecast_path.empty() && !may_change && !uses_learned_forecast(options.kv) && !globals.quiet) {
    say("kvasir: --kv-forecast: it changes nothing without --kv-policy ladder-learned and --kv-budget");
  }
  fill_sampling(options.sampling, session.engine->model_info().default_sampling);
  if (!options.raw && session.engine->chat_template() == nullptr) {
    options.raw = true;
    if (!globals.quiet) {
      say(fmt::format("kvasir: {} has no chat template; it continues your text as it stands", options.model));
    }
  }
  if (prompt) return answer_prompt(options, globals, *prompt, guide, session, signals);
  return talk(options, globals, session, signals);
}

}  // namespace

void add_run(CLI::App& app, Context& context) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* verb = app.add_subcommand("run", "Answer one prompt, or chat in the terminal");
  verb->add_option("MODEL,-m,--model", options->model, "Catalogue name, .gguf file or folder")->required();
  CLI::Option* prompt =
      verb->add_option("PROMPT,-p,--prompt", options->prompt,
                       "What to answer (without it: the standard input if piped, else a conversation)");
  verb->add_option("--file", options->file, "Read the prompt from a file")->excludes(prompt);
  verb->add_option("--system", options->system, "System message");
  verb->add_flag("--raw", options->raw, "No chat template: the model continues the text");
  CLI::Option* special = verb->add_flag(
      "--special", options->special, "With --raw: parse special tokens in the text (the default)");
  verb->add_flag("--no-special", options->no_special, "With --raw: special tokens in the text are plain text")->excludes(special);
  verb->add_flag("--plain,--no-markdown", options->plain,
                 "Print the answer without Markdown formatting");
  verb->add_flag("--no-history", options->no_history,
                 "Do not read or write the input history file");
  add_chat_template_option(*verb, options->engine);
  add_context_option(*verb, options->engine, "--ctx,-c,--ctx-size");
  add_sampling_options(*verb, options->sampling);
  add_guide_options(*verb, options->guide);
  add_kv_type_option(*verb, options->engine);
  add_kv_policy_options(*verb, options->kv);
  add_kv_forecast_option(*verb, options->engine);
  add_kv_log_option(*verb, options->engine.kv_log);
  add_weight_options(*verb, options->engine);
  add_speculate_option(*verb, options->engine, "auto");
  add_adapter_options(*verb, options->engine);
  add_batching_options(*verb, options->engine);
  on_chosen(*verb, context, [options, &context] { return run(*options, context.options); });
}

}  // namespace kvasir::cli
