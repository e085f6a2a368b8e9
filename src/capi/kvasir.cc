// The C API over the engine: errors become a status and a line, and no exception leaves.
#include "kvasir/kvasir.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/kv_params.h"
#include "kvasir/engine.h"

namespace {

using kvasir::Engine;
using kvasir::Error;
using kvasir::ErrorKind;
using kvasir::Result;
using kvasir::Status;
using kvasir::TokenId;

// The caller and the engine's thread meet here.
class Ending {
 public:
  void set(std::optional<Error> error) {
    {
      const std::lock_guard lock(mutex_);
      error_ = std::move(error);
      ended_ = true;
    }
    changed_.notify_all();
  }
  std::optional<Error> wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ended_; });
    return error_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  std::optional<Error> error_;
};

std::string& last_error() {
  thread_local std::string message;
  return message;
}

kvasir_result status_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUsage:
      return KVASIR_USAGE;
    case ErrorKind::kBadFile:
    case ErrorKind::kNotFound:
      return KVASIR_BAD_FILE;
    case ErrorKind::kUnmet:
      return KVASIR_LIMIT;
    case ErrorKind::kMachine:
      return KVASIR_MACHINE;
    case ErrorKind::kUnavailable:
      return KVASIR_UNAVAILABLE;
    case ErrorKind::kCancelled:
      return KVASIR_CANCELLED;
    case ErrorKind::kInternal:
      break;
  }
  return KVASIR_INTERNAL;
}

kvasir_result fail(kvasir_result status, std::string message) {
  last_error() = std::move(message);
  return status;
}

// Checks a size of the caller's data: a difference that went below 0 is no such size.
Status check_size(const char* name, size_t size,
                  std::int32_t most = std::numeric_limits<std::int32_t>::max()) {
  if (size <= static_cast<size_t>(most)) return {};
  return kvasir::make_error(ErrorKind::kUsage, fmt::format("{}: must be at most {}, is {}", name, most, size),
                            name);
}

// Runs the work of a function; whatever it ends with becomes a status.
template <class Work>
kvasir_result run(const Work& work) noexcept {
  try {
    const Status status = work();
    return status ? KVASIR_OK : fail(status_of(status.error().kind), status.error().message);
  } catch (const std::bad_alloc&) {
    last_error().clear();  // there may be no room for a line
    return KVASIR_MACHINE;
  } catch (const std::exception& fault) {
    return fail(KVASIR_INTERNAL, fault.what());
  }
}

Status check_given(std::initializer_list<std::pair<const char*, const void*>> pointers) {
  for (const auto& [name, pointer] : pointers) {
    if (pointer == nullptr)
      return kvasir::make_error(ErrorKind::kUsage, fmt::format("{}: is NULL", name), name);
  }
  return {};
}

template <class T>
Status write_out(std::span<const T> items, T* buffer, size_t capacity, size_t* count) {
  *count = items.size();
  if (items.size() > capacity) {
    return kvasir::make_error(ErrorKind::kUnmet,
                              fmt::format("capacity: {} are needed, it is {}", items.size(), capacity),
                              "capacity");
  }
  if (!items.empty()) KVASIR_CHECKED(check_given({{"buffer", buffer}}));
  std::ranges::copy(items, buffer);
  return {};
}

Result<kvasir::EngineConfig> config_of(const char* path, const kvasir_settings& settings) {
  kvasir::EngineConfig config;
  config.model_path = path;
  config.num_threads = settings.threads;
  config.max_model_len_tokens = settings.ctx_tokens;
  config.memory_bytes = settings.memory_bytes;
  config.max_num_seqs = settings.max_num_seqs;
  config.fast = settings.fast != 0;
  config.prefix_cache = settings.prefix_cache != 0;
  const std::string_view kv_type = settings.kv_type == nullptr ? "q12" : settings.kv_type;
  const auto known = kvasir::kv_cache_type_named(kv_type);
  if (!known) {
    return kvasir::make_error(ErrorKind::kUsage,
                              fmt::format("kv_type: must be q12, f16 or f32, is '{}'", kv_type), "kv_type");
  }
  config.kv_cache_type = *known;
  if (settings.chat_template != nullptr) config.chat_template = settings.chat_template;
  return config;
}

// The same error with the field's name in front of its message.
Status of_field(Status status) {
  if (!status) status.error().message = status.error().param + ": " + status.error().message;
  return status;
}

Result<kvasir::KvParams> kv_of(const kvasir_sampling& sampling) {
  kvasir::KvParams kv;
  if (sampling.kv_policy != nullptr) kv.policy = sampling.kv_policy;
  if (sampling.kv_budget != nullptr) KVASIR_CHECKED(of_field(kvasir::set_kv_budget(sampling.kv_budget, kv)));
  if (sampling.kv_quality != nullptr)
    KVASIR_CHECKED(of_field(kvasir::set_kv_quality(sampling.kv_quality, kv)));
  if (sampling.kv_max_lost_share != nullptr) kv.max_lost_share = *sampling.kv_max_lost_share;
  kv.learns = sampling.kv_learn != 0;
  return kv;
}

Result<kvasir::SamplingParams> params_of(const kvasir_sampling& sampling) {
  kvasir::SamplingParams params;
  if (sampling.max_tokens < -1) {
    return kvasir::make_error(ErrorKind::kUsage,
                              fmt::format("max_tokens: must be at least -1, is {}", sampling.max_tokens),
                              "max_tokens");
  }
  if (sampling.max_tokens != -1) params.max_tokens = sampling.max_tokens;
  params.min_tokens = sampling.min_tokens;
  params.temperature = sampling.temperature;
  params.top_k = sampling.top_k;
  params.top_p = sampling.top_p;
  params.min_p = sampling.min_p;
  params.repetition_penalty = sampling.repetition_penalty;
  params.presence_penalty = sampling.presence_penalty;
  params.frequency_penalty = sampling.frequency_penalty;
  if (sampling.has_seed != 0) params.seed = sampling.seed;
  params.ignore_eos = sampling.ignore_eos != 0;
  KVASIR_CHECKED(check_size("num_stop", sampling.num_stop, kvasir::kMaxStopStrings));
  if (sampling.num_stop > 0) KVASIR_CHECKED(check_given({{"stop", sampling.stop}}));
  for (size_t i = 0; i < sampling.num_stop; ++i) {
    KVASIR_CHECKED(check_given({{"stop", sampling.stop[i]}}));
    params.stop.emplace_back(sampling.stop[i]);
  }
  return params;
}

// Nothing: any form will do.
Result<std::optional<kvasir::Guide>> guide_of(const kvasir_sampling& sampling) {
  std::optional<kvasir::Guide> guide;
  KVASIR_CHECKED(check_size("num_choices", sampling.num_choices));
  const int num_forms = (sampling.json_schema != nullptr ? 1 : 0) + (sampling.regex != nullptr ? 1 : 0) +
                        (sampling.grammar != nullptr ? 1 : 0) + (sampling.num_choices > 0 ? 1 : 0);
  if (num_forms > 1) {
    return kvasir::make_error(ErrorKind::kUsage, "json_schema, regex, grammar, choices: an answer has one form", "json_schema");
  }
  if (sampling.json_schema != nullptr) {
    guide = kvasir::Guide{.text = sampling.json_schema, .is_strict = true, .field = "json_schema"};
  } else if (sampling.regex != nullptr) {
    guide = kvasir::Guide{.kind = kvasir::Guide::Kind::kRegex, .text = sampling.regex, .field = "regex"};
  } else if (sampling.grammar != nullptr) {
    guide = kvasir::Guide{.kind = kvasir::Guide::Kind::kGbnf, .text = sampling.grammar, .field = "grammar"};
  } else if (sampling.num_choices > 0) {
    KVASIR_CHECKED(check_given({{"choices", sampling.choices}}));
    guide = kvasir::Guide{.kind = kvasir::Guide::Kind::kChoice, .field = "choices"};
    for (size_t i = 0; i < sampling.num_choices; ++i) {
      KVASIR_CHECKED(check_given({{"choices", sampling.choices[i]}}));
      guide->choices.emplace_back(sampling.choices[i]);
    }
  }
  return guide;
}

kvasir_finish_reason reason_of(const std::optional<kvasir::FinishReason>& reason) {
  if (!reason) return KVASIR_RUNNING;
  switch (*reason) {
    case kvasir::FinishReason::kStop:
      return KVASIR_FINISH_STOP;
    case kvasir::FinishReason::kLength:
      return KVASIR_FINISH_LENGTH;
    case kvasir::FinishReason::kCancelled:
      return KVASIR_FINISH_CANCELLED;
    case kvasir::FinishReason::kError:
      break;
  }
  return KVASIR_FINISH_ERROR;
}

std::optional<Error> error_of(const kvasir::RequestOutput& output) {
  if (output.error) return output.error;
  if (output.finish_reason != kvasir::FinishReason::kCancelled) return std::nullopt;
  return Error{ErrorKind::kCancelled, "the request was cancelled"};
}

}  // namespace

struct kvasir_engine {
  std::shared_ptr<Engine> engine;
};

struct kvasir_request {
  std::weak_ptr<Engine> engine;
  kvasir::RequestId id{};
  std::shared_ptr<Ending> ending;
};

const char* kvasir_last_error(void) { return last_error().c_str(); }

const char* kvasir_version(void) { return KVASIR_VERSION; }

kvasir_settings kvasir_default_settings(void) {
  const kvasir::EngineConfig config;
  kvasir_settings settings = {};
  settings.max_num_seqs = config.max_num_seqs;
  settings.kv_type = "q12";
  settings.prefix_cache = 1;
  return settings;
}

kvasir_result kvasir_load(const char* path, const kvasir_settings* settings, kvasir_engine** engine) {
  return run([&]() -> Status {
    KVASIR_CHECKED(check_given({{"path", path}, {"engine", engine}}));
    if (*path == '\0') return kvasir::make_error(ErrorKind::kUsage, "path: is empty", "path");
    KVASIR_TRY(const kvasir::EngineConfig config,
               config_of(path, settings == nullptr ? kvasir_default_settings() : *settings));
    KVASIR_TRY(std::shared_ptr<Engine> loaded, Engine::load(config));
    *engine = new kvasir_engine{std::move(loaded)};
    return {};
  });
}

void kvasir_free(kvasir_engine* engine) {
  if (engine == nullptr) return;
  run([&]() -> Status {
    engine->engine->drain(0);
    delete engine;
    return {};
  });
}

kvasir_result kvasir_tokenize(const kvasir_engine* engine, const char* text, size_t text_bytes,
                              int32_t* token_ids, size_t capacity, size_t* count) {
  return run([&]() -> Status {
    KVASIR_CHECKED(check_given({{"engine", engine}, {"text", text}, {"count", count}}));
    KVASIR_CHECKED(check_size("text_bytes", text_bytes));
    KVASIR_TRY(const std::vector<TokenId> ids, engine->engine->encode({text, text_bytes}));
    return write_out(std::span<const TokenId>(ids), token_ids, capacity, count);
  });
}

kvasir_result kvasir_detokenize(const kvasir_engine* engine, const int32_t* token_ids, size_t num_token_ids,
                                char* text, size_t capacity, size_t* count) {
  return run([&]() -> Status {
    KVASIR_CHECKED(check_given({{"engine", engine}, {"token_ids", token_ids}, {"count", count}}));
    KVASIR_CHECKED(check_size("num_token_ids", num_token_ids));
    KVASIR_TRY(const std::string decoded, engine->engine->decode({token_ids, num_token_ids}));
    return write_out(std::span<const char>(decoded), text, capacity, count);
  });
}

kvasir_result kvasir_chat_prompt(const kvasir_engine* engine, const char* messages_json, int32_t* token_ids,
                                 size_t capacity, size_t* count) {
  return run([&]() -> Status {
    KVASIR_CHECKED(check_given({{"engine", engine}, {"messages_json", messages_json}, {"count", count}}));
    KVASIR_TRY(const std::vector<TokenId> ids, engine->engine->encode_chat({.messages = messages_json}));
    return write_out(std::span<const TokenId>(ids), token_ids, capacity, count);
  });
}

kvasir_sampling kvasir_default_sampling(void) {
  const kvasir::SamplingParams params;
  kvasir_sampling sampling = {};
  sampling.max_tokens = -1;
  sampling.temperature = params.temperature;
  sampling.top_p = params.top_p;
  sampling.repetition_penalty = params.repetition_penalty;
  sampling.kv_learn = 1;
  return sampling;
}

kvasir_result kvasir_submit(kvasir_engine* engine, const int32_t* prompt, size_t num_prompt_tokens,
                            const kvasir_sampling* sampling, kvasir_on_piece on_piece, void* user,
                            kvasir_request** request) {
  return run([&]() -> Status {
    KVASIR_CHECKED(check_given({{"engine", engine}, {"prompt", prompt}, {"request", request}}));
    KVASIR_CHECKED(check_size("num_prompt_tokens", num_prompt_tokens));
    if (on_piece == nullptr) return kvasir::make_error(ErrorKind::kUsage, "on_piece: is NULL", "on_piece");
    const kvasir_sampling wanted = sampling == nullptr ? kvasir_default_sampling() : *sampling;
    kvasir::Request asked;
    asked.prompt_token_ids.assign(prompt, prompt + num_prompt_tokens);
    KVASIR_TRY(asked.sampling, params_of(wanted));
    KVASIR_TRY(asked.kv, kv_of(wanted));
    KVASIR_TRY(asked.guide, guide_of(wanted));
    auto made = std::make_unique<kvasir_request>();
    made->engine = engine->engine;
    made->ending = std::make_shared<Ending>();
    const auto sink = [on_piece, user, ending = made->ending](const kvasir::RequestOutput& output) {
      const kvasir_piece piece = {.text = output.text.c_str(),
                                  .text_bytes = output.text.size(),
                                  .token_ids = output.token_ids.data(),
                                  .num_token_ids = output.token_ids.size(),
                                  .finish_reason = reason_of(output.finish_reason)};
      on_piece(&piece, user);
      if (output.request_finished) ending->set(error_of(output));
    };
    KVASIR_TRY(made->id, engine->engine->submit(std::move(asked), sink));
    *request = made.release();
    return {};
  });
}

void kvasir_cancel(kvasir_request* request) {
  if (request == nullptr) return;
  run([&]() -> Status {
    if (const std::shared_ptr<Engine> engine = request->engine.lock()) engine->cancel(request->id);
    return {};
  });
}

kvasir_result kvasir_finish(kvasir_request* request) {
  return run([&]() -> Status {
    KVASIR_CHECKED(check_given({{"request", request}}));
    const std::unique_ptr<kvasir_request> owned(request);
    if (std::optional<Error> error = owned->ending->wait()) return std::unexpected(std::move(*error));
    return {};
  });
}

kvasir_result kvasir_embed(kvasir_engine* engine, const int32_t* prompt, size_t num_prompt_tokens,
                           kvasir_pooling pooling, float* vector, size_t capacity, size_t* count) {
  return run([&]() -> Status {
    KVASIR_CHECKED(check_given({{"engine", engine}, {"prompt", prompt}, {"count", count}}));
    KVASIR_CHECKED(check_size("num_prompt_tokens", num_prompt_tokens));
    if (pooling < KVASIR_POOLING_MEAN || pooling > KVASIR_POOLING_OF_MODEL) {
      return kvasir::make_error(ErrorKind::kUsage,
                                fmt::format("pooling: must be KVASIR_POOLING_MEAN (1), KVASIR_POOLING_LAST (2) or "
                                            "KVASIR_POOLING_OF_MODEL (3), is {}",
                                            static_cast<int>(pooling)),
                                "pooling");
    }
    constexpr kvasir::Pooling kPoolings[] = {kvasir::Pooling::kMean, kvasir::Pooling::kLast,
                                             kvasir::Pooling::kOfModel};
    kvasir::Request asked;
    asked.prompt_token_ids.assign(prompt, prompt + num_prompt_tokens);
    asked.pooling = kPoolings[pooling - KVASIR_POOLING_MEAN];
    asked.sampling.max_tokens = 0;
    asked.use_prefix_cache = false;
    struct Outcome {
      std::vector<float> embedding;
      Ending ending;
    };
    const auto outcome = std::make_shared<Outcome>();
    KVASIR_CHECKED(engine->engine->submit(std::move(asked), [outcome](kvasir::RequestOutput output) {
      outcome->embedding = std::move(output.embedding);
      outcome->ending.set(error_of(output));
    }));
    if (std::optional<Error> error = outcome->ending.wait()) return std::unexpected(std::move(*error));
    return write_out(std::span<const float>(outcome->embedding), vector, capacity, count);
  });
}
