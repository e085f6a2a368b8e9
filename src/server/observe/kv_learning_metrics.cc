#include "server/observe/kv_learning_metrics.h"

#include <algorithm>
#include <string>
#include <string_view>

namespace kvasir::server::observe {

void append_kv_learning(PrometheusText& out, std::span<const ModelMetrics> models) {
  if (std::ranges::none_of(models, [](const ModelMetrics& model) { return model.engine.kv_learning.has_value(); })) return;
  const auto append = [&](std::string_view name, std::string_view type, std::string_view help, auto value_of) {
    out.begin(name, type, help);
    for (const ModelMetrics& model : models) {
      if (!model.engine.kv_learning) continue;
      out.value(name, prometheus_label("model", model.name), static_cast<double>(value_of(*model.engine.kv_learning)));
    }
  };
  append("kv_forecast_version", "gauge", "The forecast that serves new requests of ladder-learned; 0: it was not learned from traffic (--kv-learn)",
         [](const auto& of) { return of.version; });
  append("kv_learn_off", "gauge", "1: the forecast has lost to one that needs no learning, and nothing is learned any more",
         [](const auto& of) { return of.state == KvLearningState::kOff ? 1 : 0; });
  append("kv_learn_sequences_total", "counter", "Requests that kept all of their KV and were learned from", [](const auto& of) { return of.num_sequences; });
  append("kv_learn_sequences_dropped_total", "counter", "Requests that kept all of their KV while too many others waited to be learned from",
         [](const auto& of) { return of.num_sequences_dropped; });
  append("kv_learn_rows_total", "counter", "Blocks that were learned from", [](const auto& of) { return of.num_rows; });
  append("kv_learn_challengers_total", "counter", "Forecasts that were learned", [](const auto& of) { return of.num_challengers; });
  append("kv_learn_promotions_total", "counter", "Forecasts that won against the one that served", [](const auto& of) { return of.num_promotions; });
  append("kv_learn_duel_cost_ratio", "gauge", "Planned costs of the newest forecast, to those of the one that serves",
         [](const auto& of) { return of.duel_cost_ratio; });
}

}  // namespace kvasir::server::observe
