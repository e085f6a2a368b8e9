#include "python/request_options.h"

#include <array>
#include <utility>

#include "engine/kv_params.h"

namespace kvasir::python {
namespace {

using Sampling = SamplingParams;

template <auto Member>
void read_float(std::string_view name, nb::handle value, Request& request) {
  request.sampling.*Member = static_cast<float>(number_of(name, value));
}

template <auto Member>
void read_int32(std::string_view name, nb::handle value, Request& request) {
  request.sampling.*Member = int32_of(name, value);
}

// None: as if it were not there.
template <auto Member>
void read_optional_int32(std::string_view name, nb::handle value, Request& request) {
  (request.sampling.*Member).reset();
  if (!value.is_none()) request.sampling.*Member = int32_of(name, value);
}

template <auto Member>
void read_truth(std::string_view name, nb::handle value, Request& request) {
  request.sampling.*Member = truth_of(name, value);
}

void read_logit_bias(std::string_view name, nb::handle value, Request& request) {
  if (!nb::isinstance<nb::dict>(value)) raise_wrong_type(name, "a dict of token ids and numbers", value);
  request.sampling.logit_bias.clear();
  for (const auto& [token, bias] : nb::borrow<nb::dict>(value)) {
    request.sampling.logit_bias.emplace_back(int32_of(name, token),
                                             static_cast<float>(number_of(name, bias)));
  }
}

// From -2^63 on, as the server takes it, and to 2^64.
void read_seed(std::string_view name, nb::handle value, Request& request) {
  request.sampling.seed.reset();
  if (value.is_none()) return;
  if (PyLong_Check(value.ptr()) != 0 && PyBool_Check(value.ptr()) == 0) {
    const unsigned long long seed = PyLong_AsUnsignedLongLong(value.ptr());
    if (PyErr_Occurred() == nullptr) {
      request.sampling.seed = seed;
      return;
    }
    PyErr_Clear();
  }
  request.sampling.seed = static_cast<std::uint64_t>(whole_number_of(name, value));
}

void read_stop(std::string_view name, nb::handle value, Request& request) {
  request.sampling.stop.clear();
  if (!value.is_none()) request.sampling.stop = texts_of(name, value);
}

void read_stop_tokens(std::string_view name, nb::handle value, Request& request) {
  request.sampling.stop_token_ids.clear();
  if (!value.is_none()) request.sampling.stop_token_ids = token_ids_of(name, value);
}

void read_allowed_tokens(std::string_view name, nb::handle value, Request& request) {
  request.sampling.allowed_token_ids.clear();
  if (!value.is_none()) request.sampling.allowed_token_ids = token_ids_of(name, value);
}

void read_kv_policy(std::string_view name, nb::handle value, Request& request) {
  request.kv.policy = text_of(name, value);
}

// A share, a number of bytes, or either as a text with its unit.
void read_kv_budget(std::string_view name, nb::handle value, Request& request) {
  const bool is_text = PyUnicode_Check(value.ptr()) != 0;
  const std::string text = is_text ? text_of(name, value) : fmt::format("{}", number_of(name, value));
  request.kv.budget = 1.0;
  request.kv.budget_bytes = 0;
  if (const Status status = set_kv_budget(text, request.kv); !status) {
    raise_usage(fmt::format("{}: {}", name, status.error().message), std::string(name));
  }
}

void read_kv_quality(std::string_view name, nb::handle value, Request& request) {
  if (const Status status = set_kv_quality(text_of(name, value), request.kv); !status) {
    raise_usage(fmt::format("{}: {}", name, status.error().message), std::string(name));
  }
}

void read_kv_max_lost_share(std::string_view name, nb::handle value, Request& request) {
  request.kv.max_lost_share.reset();
  if (!value.is_none()) request.kv.max_lost_share = number_of(name, value);
}

void read_kv_learn(std::string_view name, nb::handle value, Request& request) {
  request.kv.learns = truth_of(name, value);
}

void read_pooling(std::string_view name, nb::handle value, Request& request) {
  const std::string pooling = text_of(name, value);
  constexpr std::pair<std::string_view, Pooling> kPoolings[] = {{"model", Pooling::kOfModel},
                                                                {"mean", Pooling::kMean},
                                                                {"last", Pooling::kLast},
                                                                {"cls", Pooling::kFirst}};
  for (const auto& [known, value_of] : kPoolings) {
    if (pooling != known) continue;
    request.pooling = value_of;
    return;
  }
  raise_usage(fmt::format("{}: must be model, mean, last or cls, got '{}'", name, pooling), std::string(name));
}

void set_guide(std::string_view name, Guide guide, Request& request) {
  if (request.guide) {
    raise_usage(fmt::format("{}: the answer has a form by {}", name, request.guide->field), std::string(name));
  }
  guide.field = name;
  request.guide = std::move(guide);
}

// A schema as text, or what json.dumps makes one of.
void read_json_schema(std::string_view name, nb::handle value, Request& request) {
  if (value.is_none()) return;
  if (PyUnicode_Check(value.ptr()) != 0) return set_guide(name, {.text = text_of(name, value)}, request);
  const nb::object text = nb::module_::import_("json").attr("dumps")(value);
  set_guide(name, {.text = text_of(name, text)}, request);
}

void read_regex(std::string_view name, nb::handle value, Request& request) {
  if (value.is_none()) return;
  set_guide(name, {.kind = Guide::Kind::kRegex, .text = text_of(name, value)}, request);
}

void read_grammar(std::string_view name, nb::handle value, Request& request) {
  if (value.is_none()) return;
  set_guide(name, {.kind = Guide::Kind::kGbnf, .text = text_of(name, value)}, request);
}

void read_choices(std::string_view name, nb::handle value, Request& request) {
  if (value.is_none()) return;
  set_guide(name, {.kind = Guide::Kind::kChoice, .choices = texts_of(name, value)}, request);
}

// None: all.
void read_dimensions(std::string_view name, nb::handle value, Request& request) {
  request.dimensions = value.is_none() ? 0 : int32_of(name, value);
  if (value.is_none() || request.dimensions > 0) return;
  raise_usage(fmt::format("{}: must be at least 1, got {}", name, request.dimensions), std::string(name));
}

void read_priority(std::string_view name, nb::handle value, Request& request) {
  request.priority = int32_of(name, value);
}

void read_use_prefix_cache(std::string_view name, nb::handle value, Request& request) {
  request.use_prefix_cache = truth_of(name, value);
}

constexpr auto kFields = std::to_array<Field<Request>>({
    {"temperature", read_float<&Sampling::temperature>},
    {"top_k", read_int32<&Sampling::top_k>},
    {"top_p", read_float<&Sampling::top_p>},
    {"min_p", read_float<&Sampling::min_p>},
    {"repetition_penalty", read_float<&Sampling::repetition_penalty>},
    {"presence_penalty", read_float<&Sampling::presence_penalty>},
    {"frequency_penalty", read_float<&Sampling::frequency_penalty>},
    {"logit_bias", read_logit_bias},
    {"allowed_token_ids", read_allowed_tokens},
    {"seed", read_seed},
    {"n", read_int32<&Sampling::n>},
    {"beam_width", read_int32<&Sampling::beam_width>},
    {"length_penalty", read_float<&Sampling::length_penalty>},
    {"max_tokens", read_optional_int32<&Sampling::max_tokens>},
    {"min_tokens", read_int32<&Sampling::min_tokens>},
    {"ignore_eos", read_truth<&Sampling::ignore_eos>},
    {"stop", read_stop},
    {"stop_token_ids", read_stop_tokens},
    {"include_stop_str_in_output", read_truth<&Sampling::include_stop_str_in_output>},
    {"skip_special_tokens", read_truth<&Sampling::skip_special_tokens>},
    {"logprobs", read_optional_int32<&Sampling::logprobs>},
    {"prompt_logprobs", read_optional_int32<&Sampling::prompt_logprobs>},
    {"json_schema", read_json_schema},
    {"regex", read_regex},
    {"grammar", read_grammar},
    {"choices", read_choices},
    {"kv_policy", read_kv_policy},
    {"kv_budget", read_kv_budget},
    {"kv_quality", read_kv_quality},
    {"kv_max_lost_share", read_kv_max_lost_share},
    {"kv_learn", read_kv_learn},
    {"pooling", read_pooling},
    {"dimensions", read_dimensions},
    {"priority", read_priority},
    {"use_prefix_cache", read_use_prefix_cache},
});

}  // namespace

Request read_request(std::vector<TokenId> prompt, const nb::dict& options) {
  Request request;
  read_fields<Request>("parameter", options, kFields, request);
  request.prompt_token_ids = std::move(prompt);
  return request;
}

std::vector<std::string_view> option_names() { return names_of<Request>(kFields); }

}  // namespace kvasir::python
