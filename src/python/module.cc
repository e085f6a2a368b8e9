// kvasir._kvasir: what the package kvasir is built on. src/python/kvasir/_kvasir.pyi says what each gives.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/embedding_prompt.h"
#include "engine/pair_scoring.h"
#include "kvasir/engine.h"
#include "python/engine_settings.h"
#include "python/field.h"
#include "python/pending.h"
#include "python/python_error.h"
#include "python/quant.h"
#include "python/request_options.h"
#include "python/session.h"
#include "store/model_store.h"
#include "text/tokenizer.h"

namespace kvasir::python {
namespace {

using namespace nb::literals;

nb::tuple tuple_of(const TokenLogprob& token) {
  return nb::make_tuple(token.token, token.logprob, token.rank);
}

nb::list list_of(const std::vector<PositionLogprobs>& positions) {
  nb::list list;
  for (const PositionLogprobs& position : positions) {
    nb::list top;
    for (const TokenLogprob& token : position.top) top.append(tuple_of(token));
    list.append(nb::make_tuple(tuple_of(position.chosen), top));
  }
  return list;
}

nb::tuple usage_of(const Output& output) {
  const Usage& usage = output.news.usage;
  return nb::make_tuple(usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens,
                        usage.kv_bytes_share, usage.kv_bytes_share_mean, usage.kv_bytes_share_peak);
}

nb::tuple cost_of(const Output& output) {
  const RequestCost& cost = output.news.cost;
  return nb::make_tuple(cost.queue_ms, cost.prefill_ms, cost.decode_ms, cost.cpu_ms, cost.kv_byte_seconds);
}

std::optional<std::string_view> finish_reason_of(const Output& output) {
  if (!output.news.finish_reason) return std::nullopt;
  return name_of(*output.news.finish_reason);
}

nb::object error_of(const Output& output) {
  return output.news.error ? exception_of(*output.news.error) : nb::none();
}

void bind_output(nb::module_& module) {
  nb::class_<Output>(module, "Output")
      .def_ro("request", &Output::request)
      .def_prop_ro("choice", [](const Output& output) { return output.news.index; })
      .def_prop_ro("token_ids", [](const Output& output) { return output.news.token_ids; })
      .def_prop_ro("text", [](const Output& output) { return output.news.text; })
      .def_prop_ro("logprobs", [](const Output& output) { return list_of(output.news.logprobs); })
      .def_prop_ro("prompt_logprobs",
                   [](const Output& output) { return list_of(output.news.prompt_logprobs); })
      .def_prop_ro("embedding", [](const Output& output) { return output.news.embedding; })
      .def_prop_ro("finish_reason", finish_reason_of)
      .def_prop_ro("stop_string", [](const Output& output) { return output.news.stop_string; })
      .def_prop_ro("stop_token", [](const Output& output) { return output.news.stop_token; })
      .def_prop_ro("error", error_of)
      .def_prop_ro("usage", usage_of)
      .def_prop_ro("cost", cost_of)
      .def_prop_ro("request_finished", [](const Output& output) { return output.news.request_finished; });
}

// A dict of name_a = value ...
template <class... Members>
nb::dict dict_of(const Members&... members) {
  const nb::object type = nb::borrow(reinterpret_cast<PyObject*>(&PyDict_Type));
  return nb::borrow<nb::dict>(type(members...));
}

nb::dict info_of(const Session& session) {
  const std::shared_ptr<Engine> engine = session.engine();
  const ModelInfo& info = engine->model_info();
  return dict_of("name"_a = info.name, "architecture"_a = info.architecture,
                 "quantization"_a = info.quantization, "num_parameters"_a = info.num_parameters,
                 "weight_bytes"_a = info.weight_bytes, "num_layers"_a = info.num_layers,
                 "hidden_size"_a = info.hidden_size, "vocab_size"_a = info.vocab_size,
                 "context_length_tokens"_a = info.context_length_tokens,
                 "max_model_len_tokens"_a = info.max_model_len_tokens,
                 "has_tokenizer"_a = engine->tokenizer() != nullptr,
                 "has_chat_template"_a = engine->chat_template() != nullptr);
}

nb::dict stats_of(const Session& session) {
  const EngineStats stats = session.engine()->stats();
  return dict_of("num_running"_a = stats.num_running, "num_waiting"_a = stats.num_waiting,
                 "num_requests_finished"_a = stats.num_requests_finished,
                 "num_requests_cancelled"_a = stats.num_requests_cancelled,
                 "num_prompt_tokens"_a = stats.num_prompt_tokens,
                 "num_cached_prompt_tokens"_a = stats.num_cached_prompt_tokens,
                 "num_generated_tokens"_a = stats.num_generated_tokens, "num_steps"_a = stats.num_steps,
                 "num_stepped_sequences"_a = stats.num_stepped_sequences,
                 "kv_blocks_total"_a = stats.kv_blocks_total, "kv_blocks_used"_a = stats.kv_blocks_used,
                 "kv_bytes_total"_a = stats.kv_bytes_total, "kv_bytes_used"_a = stats.kv_bytes_used,
                 "kv_bytes_peak"_a = stats.kv_bytes_peak, "peak_rss_bytes"_a = stats.peak_rss_bytes);
}

std::vector<TokenId> encode(Session& session, nb::handle value, nb::handle add_special,
                            nb::handle parse_special) {
  const std::string text = text_of("text", value);
  const text::EncodeOptions options{.parse_special = truth_of("parse_special", parse_special),
                                    .add_special = truth_of("add_special", add_special)};
  const std::shared_ptr<Engine> engine = session.engine();
  if (engine->tokenizer() == nullptr) raise(engine->encode(text).error());
  const Session::Away away(session);
  return engine->tokenizer()->encode(text, options);
}

nb::bytes decode(const Session& session, nb::handle token_ids, nb::handle special) {
  const std::vector<TokenId> ids = token_ids_of("token_ids", token_ids);
  const std::string text = value_or_raise(session.engine()->decode(ids, truth_of("special", special)));
  return nb::bytes(text.data(), text.size());
}

std::vector<TokenId> encode_chat(Session& session, nb::handle messages, nb::handle tools,
                                 nb::handle template_kwargs, nb::handle add_generation_prompt) {
  const ChatPrompt prompt{.messages = text_of("messages", messages),
                          .tools = text_of("tools", tools),
                          .template_kwargs = text_of("template_kwargs", template_kwargs),
                          .add_generation_prompt = truth_of("add_generation_prompt", add_generation_prompt)};
  const std::shared_ptr<Engine> engine = session.engine();
  return value_or_raise([&] {
    const Session::Away away(session);
    return engine->encode_chat(prompt);
  }());
}

std::shared_ptr<Pending> submit(const std::shared_ptr<Session>& session, const nb::list& requests) {
  std::vector<Request> asked;
  for (const nb::handle request : requests) {
    const auto [prompt, options] = nb::cast<std::pair<nb::object, nb::dict>>(request);
    asked.push_back(read_request(token_ids_of("prompt", prompt), options));
  }
  return std::make_shared<Pending>(session, std::move(asked));
}

// Requests for the scores of pairs (query, document). Raises where the model has no classifier and is asked nothing.
std::shared_ptr<Pending> submit_pairs(const std::shared_ptr<Session>& session, const nb::list& pairs,
                                      nb::handle instruction, nb::handle truncate) {
  const std::shared_ptr<Engine> engine = session->engine();
  const ModelInfo& info = engine->model_info();
  const PairScoring scoring = pair_scoring_of(info, engine->tokenizer());
  if (scoring.kind == PairScoringKind::kNone) raise_usage(scoring.refusal, "model");
  const std::string task = text_of("instruction", instruction);
  const bool is_cut = truth_of("truncate", truncate);
  std::vector<std::pair<std::string, std::string>> texts;
  for (const nb::handle pair : pairs) {
    const auto [query, document] = nb::cast<std::pair<nb::object, nb::object>>(pair);
    texts.emplace_back(text_of("query", query), text_of("documents", document));
  }
  std::vector<Request> asked;
  {
    const Session::Away away(*session);
    for (const auto& [query, document] : texts) {
      asked.push_back(pair_request(scoring, *engine->tokenizer(),
                                   {.query = query,
                                    .document = document,
                                    .instruction = task,
                                    .max_prompt_tokens = is_cut ? info.max_model_len_tokens - 1 : 0}));
    }
  }
  return std::make_shared<Pending>(session, std::move(asked));
}

// The score in the news of such a request: its embedding, and the alternatives to its first token.
double pair_score(const Session& session, const std::vector<float>& embedding,
                  const std::vector<std::pair<TokenId, float>>& alternatives) {
  const std::shared_ptr<Engine> engine = session.engine();
  PositionLogprobs position;
  for (const auto& [token, logprob] : alternatives) position.top.push_back({.token = token, .logprob = logprob});
  const PairScoring scoring = pair_scoring_of(engine->model_info(), engine->tokenizer());
  return score_of_logit(pair_logit(scoring, embedding, {&position, 1}));
}

// The text that goes before each text to embed. None: nothing is said about it.
std::string embedding_prompt_of(const Session& session, nb::handle prompt, nb::handle prompt_name,
                                nb::handle input_type) {
  const auto word = [](std::string_view name, nb::handle value) -> std::optional<std::string> {
    if (value.is_none()) return std::nullopt;
    return text_of(name, value);
  };
  const PromptWish wish{.prompt = word("prompt", prompt),
                        .prompt_name = word("prompt_name", prompt_name),
                        .input_type = word("input_type", input_type)};
  return value_or_raise(embedding_prompt(session.engine()->model_info(), wish));
}

// How the model scores pairs: "classifier", "tokens", "embeddings"; or "none: " and why it does not.
std::string pair_scoring(const Session& session) {
  const std::shared_ptr<Engine> engine = session.engine();
  const PairScoring scoring = pair_scoring_of(engine->model_info(), engine->tokenizer());
  if (scoring.kind == PairScoringKind::kNone) return "none: " + scoring.refusal;
  if (scoring.kind == PairScoringKind::kClassifier) return "classifier";
  return scoring.kind == PairScoringKind::kTokens ? "tokens" : "embeddings";
}

// The file of a model of the catalogue, or the file or folder of one of the hub, fetched unless it is here. `progress` as for loading, with bytes.
std::string pull(nb::handle name, const nb::object& progress) {
  const std::shared_ptr<Session> session =
      Session::create();  // so that an interpreter that ends waits for it
  const store::ModelStore models = value_or_raise(store::ModelStore::open_default());
  const std::string wanted = text_of("name", name);
  const bool is_of_hub = store::HubName::matches(wanted);
  const store::CatalogueEntry* entry = is_of_hub ? nullptr : value_or_raise(models.find(wanted));
  std::exception_ptr raised;
  store::TransferEvents events;
  events.progress = [&](const store::Progress& done) {
    if (session->is_closing()) return false;
    const nb::gil_scoped_acquire held;
    try {
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      if (!progress.is_none()) progress(done.phase, done.bytes_done, done.bytes_total);
      return true;
    } catch (...) {
      raised = std::current_exception();
      return false;
    }
  };
  const auto fetch = [&]() -> Result<std::string> {
    if (session->is_closing()) return make_error(ErrorKind::kUnavailable, "pull: the interpreter ends");
    const Session::Away away(*session);
    if (is_of_hub) {
      KVASIR_TRY(const store::PulledHubModel pulled, models.pull_hub(wanted, {}, events));
      return pulled.path.native();
    }
    KVASIR_TRY(const store::PulledModel pulled, models.pull(*entry, {}, events));
    return pulled.path.native();
  };
  auto path = fetch();
  if (raised) std::rethrow_exception(raised);
  return value_or_raise(std::move(path));
}

}  // namespace
}  // namespace kvasir::python

NB_MODULE(_kvasir, module) {
  using namespace kvasir::python;
  // An interpreter that ends may leave objects behind; close() has freed what matters.
  nb::set_leak_warnings(false);
  bind_output(module);
  nb::class_<Pending>(module, "Pending")
      .def("take", &Pending::take, "wait"_a)
      .def("cancel", &Pending::cancel)
      .def("fileno", &Pending::descriptor)
      .def_prop_ro("finished", &Pending::is_finished);
  nb::class_<Session>(module, "Engine")
      .def(nb::new_(&Session::create))
      .def("load", &Session::load, "model"_a, "settings"_a, "progress"_a.none())
      .def("close", &Session::close)
      .def_prop_ro("is_open", [](const Session& session) { return session.engine_if_open() != nullptr; })
      .def("info", info_of)
      .def("stats", stats_of)
      .def("encode", encode, "text"_a.none(), "add_special"_a.none(), "parse_special"_a.none())
      .def("decode", decode, "token_ids"_a.none(), "special"_a.none())
      .def("encode_chat", encode_chat, "messages"_a, "tools"_a, "template_kwargs"_a,
           "add_generation_prompt"_a.none())
      .def("submit", submit, "requests"_a)
      .def("submit_pairs", submit_pairs, "pairs"_a, "instruction"_a.none(), "truncate"_a.none())
      .def("pair_score", pair_score, "embedding"_a, "alternatives"_a)
      .def("pair_scoring", pair_scoring)
      .def("embedding_prompt", embedding_prompt_of, "prompt"_a.none(), "prompt_name"_a.none(),
           "input_type"_a.none());
  module.def("end_all", &Session::end_all);
  module.def("pull", pull, "name"_a.none(), "progress"_a.none());
  module.def("setting_names", setting_names);
  module.def("option_names", option_names);
  bind_quant(module);
  module.attr("version") = KVASIR_VERSION;
}
