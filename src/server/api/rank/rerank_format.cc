#include "server/api/rank/rerank_format.h"

#include <algorithm>
#include <functional>

#include "base/json_writer.h"

namespace kvasir::server::api {

std::vector<RerankFormat::Ranked> RerankFormat::ranked(const std::vector<ChoiceResult>& choices) const {
  const std::vector<double> scores = scores_.of(choices);
  std::vector<Ranked> results;
  for (std::size_t i = 0; i < scores.size(); ++i) results.push_back({.index = i, .score = scores[i]});
  std::ranges::stable_sort(results, std::ranges::greater(), &Ranked::score);
  const auto most = static_cast<std::size_t>(options_.request.top_n.value_or(std::ssize(results)));
  results.resize(std::min(most, results.size()));
  return results;
}

void RerankFormat::write_results(JsonWriter& json, const std::vector<Ranked>& results) const {
  const RerankRequest& request = options_.request;
  json.begin_array();
  for (const Ranked& result : results) {
    json.begin_object().member("index", result.index);
    json.member(request.is_list ? "score" : "relevance_score", static_cast<float>(result.score));
    const std::string& text = request.documents[result.index].text;
    if (request.return_documents && request.is_list) {
      json.member("text", text);
    } else if (request.return_documents) {
      json.key("document");
      const std::string& own = request.document_json[result.index];
      own.empty() ? json.begin_object().member("text", text).end_object() : json.raw(own);
    }
    json.end_object();
  }
  json.end_array();
}

std::string RerankFormat::whole(const std::vector<ChoiceResult>& choices, const Usage& usage) {
  std::string body;
  JsonWriter json(body);
  const std::vector<Ranked> results = ranked(choices);
  if (options_.request.is_list) {
    write_results(json, results);
    return body;
  }
  json.begin_object().member("id", options_.id).member("object", "list").member("model", options_.model);
  json.key("results");
  write_results(json, results);
  json.key("usage").begin_object().member("prompt_tokens", usage.prompt_tokens);
  json.member("total_tokens", usage.prompt_tokens).end_object();
  json.key("meta").begin_object();
  json.key("api_version").begin_object().member("version", options_.api_version).end_object();
  json.key("billed_units").begin_object().member("search_units", 1).end_object();
  json.key("tokens").begin_object().member("input_tokens", usage.prompt_tokens).end_object();
  json.end_object().end_object();
  return body;
}

}  // namespace kvasir::server::api
