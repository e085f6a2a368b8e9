// GET /v1/kv_policies and POST /v1/kv_policies/resume: what shadows say about KV policies, and an operator's word.
#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "base/json_writer.h"
#include "server/api/admin/operators.h"
#include "server/api/endpoint.h"
#include "server/api/json_input.h"
#include "server/api/served_models.h"
#include "server/observe/shadow_metrics.h"

namespace kvasir::server::api {
namespace {

struct ResumedPolicy {
  std::string model;
  std::string policy;
};

constexpr Field<ResumedPolicy> kResumeFields[] = {
    {"policy", "string", {}, "which one, by its name", read_string<&ResumedPolicy::policy>},
    {"model", "string", {}, "of which model; default: the first", read_string<&ResumedPolicy::model>},
};

double mean(double sum, std::int64_t count) { return count > 0 ? sum / static_cast<double>(count) : 0.0; }

void write_policy(JsonWriter& json, const std::string& model, const ShadowStats& of) {
  json.begin_object()
      .member("model", model)
      .member("policy", of.promise.policy)
      .member("quality", name_of(of.promise.quality))
      .member("budget", of.promise.budget)
      .member("state", observe::state_name(of.state))
      .member("promised_kl", of.promised_kl)
      .member("mean_kl", mean(of.kl_sum, of.num_scored))
      .member("top1", mean(static_cast<double>(of.num_tokens_agreed), of.num_tokens))
      .member("evidence_log10", of.log10_evidence)
      .member("scored", of.num_scored)
      .member("unknown", of.num_unknown)
      .member("held_back", of.num_held_back)
      .member("downgraded", of.num_downgraded)
      .end_object();
}

void write_learning(JsonWriter& json, const std::string& model, const KvLearningStats& of) {
  json.begin_object()
      .member("model", model)
      .member("policy", "ladder-learned")
      .key("learning")
      .begin_object()
      .member("state", name_of(of.state))
      .member("version", of.version)
      .member("sequences", of.num_sequences)
      .member("sequences_dropped", of.num_sequences_dropped)
      .member("rows", of.num_rows)
      .member("challengers", of.num_challengers)
      .member("promotions", of.num_promotions)
      .member("duel_sequences", of.num_duel_sequences)
      .member("duel_cost_ratio", of.duel_cost_ratio)
      .member("evidence_log10", of.log10_evidence)
      .end_object()
      .end_object();
}

void list_policies(const ApiContext& context, const Writer& writer) {
  if (const ApiStatus may = check_operator(*writer); !may) return respond_unless(may, *writer);
  http::Response response;
  JsonWriter json(response.body);
  json.begin_array();
  for (const ApiContext* const model : contexts_of_models(context)) {
    const EngineStats stats = model->engine.stats();
    for (const ShadowStats& of : stats.shadows) write_policy(json, model->model_name, of);
    if (stats.kv_learning) write_learning(json, model->model_name, *stats.kv_learning);
  }
  json.end_array();
  writer->respond(std::move(response));
}

ApiStatus resume_policy(const ApiContext& context, const Writer& writer) {
  KVASIR_CHECKED(check_operator(*writer));
  Warnings warnings;
  KVASIR_TRY(const JsonDocument document, JsonDocument::parse(writer->request().body, context.limits));
  ResumedPolicy asked;
  KVASIR_CHECKED(read_fields(document.root(), std::span<const Field<ResumedPolicy>>(), std::span<const Field<ResumedPolicy>>(kResumeFields), context.limits,
                             asked, warnings));
  add_warnings(warnings, *writer);
  if (asked.policy.empty()) return bad_request("policy is missing", "policy", "missing_parameter");
  const std::size_t index = context.models == nullptr || asked.model.empty() ? ServedModels::npos : context.models->find(asked.model);
  const ApiContext& found = index == ServedModels::npos ? context : context.models->context(index);
  if (!asked.model.empty()) KVASIR_CHECKED(check_model(found, asked.model));
  if (const Status resumed = found.engine.resume_kv_policy(asked.policy); !resumed) return std::unexpected(to_api_error(resumed.error()));
  list_policies(context, writer);
  return {};
}

}  // namespace

extern const Endpoint kKvPolicies = {
    .method = "GET",
    .pattern = "/v1/kv_policies",
    .meaning = "KV policies whose answers are scored again (`--kv-shadow`): their divergence, and which are held back; what `--kv-learn` has learned; for operators",
    .answer = [](ApiContext& context, const Writer& writer, const std::string&) { list_policies(context, writer); },
    .api = "kvasir",
    .is_of_server = true,
};

extern const Endpoint kResumeKvPolicy = {
    .method = "POST",
    .pattern = "/v1/kv_policies/resume",
    .meaning = "let a policy serve again that is held back, after 500 clean shadows; for operators",
    .answer = [](ApiContext& context, const Writer& writer, const std::string&) { respond_unless(resume_policy(context, writer), *writer); },
    .api = "kvasir",
    .fields = [] { return FieldTable{.title = "Fields", .own = rows_of(std::span<const Field<ResumedPolicy>>(kResumeFields))}; },
    .is_of_server = true,
};

}  // namespace kvasir::server::api
