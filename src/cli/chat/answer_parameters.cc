#include "cli/chat/answer_parameters.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>

#include "base/nearest_name.h"
#include "base/printable.h"
#include "base/units.h"
#include "cli/engine_options.h"
#include "engine/kv_params.h"

namespace kvasir::cli {
namespace {

struct Parameter {
  std::string_view name;
  std::string (*show)(const AnswerParameters&);
  void (*copy)(AnswerParameters& to, const AnswerParameters& from);
};

template <class T>
std::string shown(const T& value) {
  return fmt::format("{}", value);
}
template <class T>
std::string shown(const std::optional<T>& value) {
  return value ? shown(*value) : "-";
}
std::string shown(const std::vector<std::string>& texts) {
  std::string list;
  for (const std::string& text : texts)
    list += fmt::format("{}\"{}\"", list.empty() ? "" : " ", printable(text));
  return list.empty() ? "-" : list;
}

template <auto kMember>
constexpr Parameter sampling(std::string_view name) {
  return {name, [](const AnswerParameters& p) { return shown(p.sampling.params.*kMember); },
          [](AnswerParameters& to, const AnswerParameters& from) {
            to.sampling.params.*kMember = from.sampling.params.*kMember;
          }};
}

std::string shown_budget(const AnswerParameters& p) {
  return p.kv.budget_bytes > 0 ? format_bytes(p.kv.budget_bytes) : shown(p.kv.budget);
}

std::string shown_quality(const AnswerParameters& p) {
  return std::string(name_of(p.kv.quality));
}

constexpr std::array kParameters = {
    Parameter{"max_tokens", [](const AnswerParameters& p) { return shown(p.sampling.max_tokens); },
              [](AnswerParameters& to, const AnswerParameters& from) {
                to.sampling.max_tokens = from.sampling.max_tokens;
              }},
    sampling<&SamplingParams::temperature>("temperature"),
    sampling<&SamplingParams::top_k>("top_k"),
    sampling<&SamplingParams::top_p>("top_p"),
    sampling<&SamplingParams::min_p>("min_p"),
    sampling<&SamplingParams::seed>("seed"),
    sampling<&SamplingParams::stop>("stop"),
    sampling<&SamplingParams::ignore_eos>("ignore_eos"),
    sampling<&SamplingParams::repetition_penalty>("repetition_penalty"),
    sampling<&SamplingParams::presence_penalty>("presence_penalty"),
    sampling<&SamplingParams::frequency_penalty>("frequency_penalty"),
    Parameter{"kv_policy", [](const AnswerParameters& p) { return p.kv.policy; },
              [](AnswerParameters& to, const AnswerParameters& from) { to.kv.policy = from.kv.policy; }},
    Parameter{"kv_budget", shown_budget,
              [](AnswerParameters& to, const AnswerParameters& from) {
                to.kv.budget = from.kv.budget;
                to.kv.budget_bytes = from.kv.budget_bytes;
              }},
    Parameter{"kv_quality", shown_quality,
              [](AnswerParameters& to, const AnswerParameters& from) { to.kv.quality = from.kv.quality; }},
    Parameter{"kv_max_lost", [](const AnswerParameters& p) { return shown(p.kv.max_lost_share); },
              [](AnswerParameters& to, const AnswerParameters& from) { to.kv.max_lost_share = from.kv.max_lost_share; }},
};

std::string with(std::string_view text, char from, char to) {
  std::string out(text);
  std::ranges::replace(out, from, to);
  return out;
}

// The flags of `run` themselves, so that both take the same.
void add_flags(CLI::App& app, AnswerParameters& parameters) {
  add_sampling_options(app, parameters.sampling);
  add_kv_policy_options(app, parameters.kv);
}

std::unexpected<Error> no_parameter(std::string_view name) {
  const std::vector<std::string> names = parameter_names();
  const std::string_view nearest =
      nearest_name(name, std::vector<std::string_view>(names.begin(), names.end()));
  return make_error(
      ErrorKind::kUsage,
      fmt::format("there is no parameter '{}'{}", printable(name),
                  nearest.empty() ? "; /set lists them" : fmt::format("; did you mean '{}'?", nearest)));
}

}  // namespace

std::vector<ParameterDescription> describe_parameters(const AnswerParameters& parameters) {
  AnswerParameters unused;
  CLI::App app;
  add_flags(app, unused);
  std::vector<ParameterDescription> descriptions;
  for (const Parameter& parameter : kParameters) {
    const CLI::Option* flag = app.get_option("--" + with(parameter.name, '_', '-'));
    descriptions.push_back(
        {std::string(parameter.name), parameter.show(parameters), flag->get_description()});
  }
  return descriptions;
}

std::vector<std::string> parameter_names() {
  std::vector<std::string> names;
  for (const Parameter& parameter : kParameters) names.emplace_back(parameter.name);
  return names;
}

Status set_parameter(std::string_view name, std::string_view value, const AnswerParameters& at_start,
                     std::int32_t vocab_size, AnswerParameters& parameters) {
  const std::string wanted = with(name, '-', '_');
  const auto parameter = std::ranges::find(kParameters, wanted, &Parameter::name);
  if (parameter == kParameters.end()) return no_parameter(wanted);
  AnswerParameters changed = parameters;
  if (value == "default") {
    parameter->copy(changed, at_start);
  } else {
    CLI::App app;
    add_flags(app, changed);
    std::vector<std::string> arguments = {fmt::format("--{}={}", with(wanted, '_', '-'), value)};
    try {
      app.parse(arguments);
    } catch (const CLI::ParseError& error) {
      std::string_view message = error.what();
      if (message.starts_with("--")) message.remove_prefix(2);
      return make_error(ErrorKind::kUsage, printable_line(message));
    }
  }
  KVASIR_CHECKED(validate(changed.sampling.params, vocab_size));
  KVASIR_CHECKED(validate(changed.kv));
  parameters = std::move(changed);
  return {};
}

}  // namespace kvasir::cli
