#include "server/observe/shadow_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace kvasir::server::observe {

std::string_view state_name(KvPolicyState state) { return state == KvPolicyState::kServing ? "serving" : "held_back"; }

void append_shadows(PrometheusText& out, std::span<const ModelMetrics> models) {
  if (std::ranges::all_of(models, [](const ModelMetrics& model) { return model.engine.shadows.empty(); })) return;
  const auto for_each = [&](auto write) {
    for (const ModelMetrics& model : models) {
      for (const ShadowStats& of : model.engine.shadows) {
        write(fmt::format("{},{},{},{}", prometheus_label("model", model.name), prometheus_label("policy", of.promise.policy),
                          prometheus_label("quality", name_of(of.promise.quality)), prometheus_label("budget", fmt::format("{}", of.promise.budget))),
              of);
      }
    }
  };
  const auto append = [&](std::string_view name, std::string_view type, std::string_view help, auto value_of) {
    out.begin(name, type, help);
    for_each([&](const std::string& labels, const ShadowStats& of) { out.value(name, labels, static_cast<double>(value_of(of))); });
  };
  constexpr std::string_view kKl = "quality_shadow_kl", kTotal = "quality_shadows_total";
  out.begin(kKl, "histogram", "Mean divergence of answers from the exact path, nats a token (--kv-shadow)");
  for_each([&](const std::string& labels, const ShadowStats& of) { out.histogram(kKl, labels, kShadowKlBounds, of.by_kl, of.kl_sum); });
  out.begin(kTotal, "counter", "Answers that were chosen to be scored, by whether they could be");
  for_each([&](const std::string& labels, const ShadowStats& of) {
    out.value(kTotal, labels + "," + prometheus_label("result", "scored"), static_cast<double>(of.num_scored));
    out.value(kTotal, labels + "," + prometheus_label("result", "unknown"), static_cast<double>(of.num_unknown));
  });
  append("quality_shadow_tokens_total", "counter", "Tokens of those that were scored", [](const auto& of) { return of.num_tokens; });
  append("quality_shadow_top1_total", "counter", "Of these tokens, those whose likeliest one is the same", [](const auto& of) { return of.num_tokens_agreed; });
  append("quality_promised_kl", "gauge", "What the policy promises, nats a token", [](const auto& of) { return of.promised_kl; });
  append("quality_evidence_log10", "gauge", "Evidence that the promise is broken, as a power of ten; the policy is held back at 3",
         [](const auto& of) { return of.log10_evidence; });
  append("quality_held_back", "gauge", "1 while the policy is held back and another serves", [](const auto& of) { return of.state == KvPolicyState::kHeldBack ? 1 : 0; });
  append("quality_rollbacks_total", "counter", "Times that the policy was held back", [](const auto& of) { return of.num_held_back; });
  append("quality_downgrades_total", "counter", "Requests for the policy that another one served", [](const auto& of) { return of.num_downgraded; });
}

}  // namespace kvasir::server::observe
