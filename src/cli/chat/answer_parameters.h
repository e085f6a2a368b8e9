// The parameters that may change between two answers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/sampling_options.h"
#include "kvasir/request.h"
#include "kvasir/result.h"

namespace kvasir::cli {

struct AnswerParameters {
  SamplingOptions sampling;
  KvParams kv;
};

// A parameter has the name of its flag, with _ for -, and takes what the flag takes.
struct ParameterDescription {
  std::string name;
  std::string value;
  std::string text;  // the flag's help
};
std::vector<ParameterDescription> describe_parameters(const AnswerParameters& parameters);

std::vector<std::string> parameter_names();

// `value` "default" is what the conversation started with. Errors (kUsage): no such parameter, with the
// nearest name; a value that the flag or a model of `vocab_size` tokens does not take.
Status set_parameter(std::string_view name, std::string_view value, const AnswerParameters& at_start,
                     std::int32_t vocab_size, AnswerParameters& parameters);

}  // namespace kvasir::cli
