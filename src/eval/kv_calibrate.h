// Which KV formats suit a model: what each costs, measured on text.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "eval/run_request.h"
#include "kvasir/engine.h"

namespace kvasir::eval {

struct KvFormatMeasurement {
  std::string format;
  double bytes_share = 1.0;  // with the format for all old blocks, as Usage
  double kl = 0.0;           // mean divergence from the full cache, nats
  double ratio = 1.0;        // of perplexities
  double cost = 0.0;         // in the unit of kv::FormatCosts
};

// Every format in turn on all texts, each compressed once before its last 256 tokens are scored: as they are,
// and with 256 tokens from near the beginning in their place. Requires: texts of 512 tokens or more, a
// multiple of 128; the engine computes kKvStepTokens a step. `progress` gets the share that is done. Errors:
// as score_prompt. `has_key_components`: the engine has them, and they are of other texts; k2pv2 is measured too.
Result<std::vector<KvFormatMeasurement>> measure_kv_formats(Engine& engine, bool has_key_components,
                                                            std::span<const std::vector<TokenId>> texts,
                                                            const std::function<void(double)>& progress,
                                                            const KeepGoing& keep_going);

// How much the model suffers when attention to a KV head is wrong: of each through the layers without a
// window, the mean being 1; empty where there are none. Each layer's cells in turn become as coarse as they
// can, and in layers where that shows each head's, before the end of the text says again what its beginning
// said: the divergence from the full cache is the weight. Requires: a text of 512 tokens or more. Otherwise
// as measure_kv_formats.
Result<std::vector<double>> weigh_kv_heads(Engine& engine, std::span<const TokenId> text,
                                           const std::function<void(double)>& progress,
                                           const KeepGoing& keep_going);

}  // namespace kvasir::eval
