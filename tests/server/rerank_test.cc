// Documents by their scores, whatever way the model has: bodies and answers of all who ask for such.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <simdjson.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/pair_scoring.h"
#include "http_client.h"
#include "running_server.h"
#include "text/testing/synthetic_vocab.h"

namespace kvasir::server::rerank_test {
namespace {

using simdjson::dom::element;

// The text that a prompt asks about: a document in Qwen's words, or all of it.
std::string asked_text(const Request& request, const text::Tokenizer& tokenizer) {
  const std::string prompt = tokenizer.decode(request.prompt_token_ids, true);
  constexpr std::string_view kBegin = "<Document>: ", kEnd = "<|im_end|>\n<|im_start|>assistant";
  const std::size_t begin = prompt.find(kBegin), end = prompt.find(kEnd);
  if (begin == std::string::npos) return prompt;
  return prompt.substr(begin + kBegin.size(), end - begin - kBegin.size());
}

float share_of_a(const std::string& text) {
  return text.empty() ? 0.0f : static_cast<float>(std::ranges::count(text, 'a')) / static_cast<float>(text.size());
}

// A model that likes the letter "a": its share in a text is the classifier's logit, how far "yes" is ahead of "no", and
// an embedding's angle.
class LikesA final : public Engine {
 public:
  explicit LikesA(ModelInfo info) : info_(std::move(info)) {
    text::VocabData data = text::byte_level_vocab({{"y", "e"}, {"ye", "s"}, {"n", "o"}});
    text::add_token(data, "<|im_start|>", text::TokenType::kControl);
    text::add_token(data, "<|im_end|>", text::TokenType::kControl);
    tokenizer_ = text::Tokenizer::create(std::move(data)).value();
    info_.vocab_size = 261;
    info_.hidden_size = info_.embedding_size = 2;
    if (info_.max_model_len_tokens == 0) info_.max_model_len_tokens = 1 << 20;
  }

  const ModelInfo& model_info() const override { return info_; }
  const text::Tokenizer* tokenizer() const override { return tokenizer_.get(); }
  const text::ChatTemplate* chat_template() const override { return nullptr; }
  using Engine::submit;
  Result<std::vector<RequestId>> submit(std::vector<Submission> submissions) override {
    std::vector<RequestId> ids;
    for (Submission& submission : submissions) {
      ids.push_back(RequestId{next_id_++});
      answer(ids.back(), submission);
    }
    return ids;
  }
  Result<std::vector<RequestId>> submit_some(std::vector<Submission> submissions) override {
    return submit(std::move(submissions));
  }
  std::shared_ptr<void> keep_open() override { return nullptr; }
  void cancel(RequestId) override {}  // every request is over by then
  EngineStats stats() const override { return {}; }
  void inspect(EngineSnapshotSink sink) override { sink({}); }
  void drain(std::int64_t) override {}

  Request last_request() const {
    const std::lock_guard lock(mutex_);
    return last_request_;
  }

 private:
  void answer(RequestId id, Submission& submission) {
    const Request& request = submission.request;
    const float share = share_of_a(asked_text(request, *tokenizer_));
    RequestOutput output;
    output.request_id = id;
    output.finish_reason = FinishReason::kLength;
    output.request_finished = true;
    output.usage.prompt_tokens = static_cast<std::int32_t>(request.prompt_token_ids.size());
    if (request.pooling == Pooling::kRank) output.embedding = {share};
    if (request.pooling == Pooling::kOfModel) output.embedding = {std::cos(share), std::sin(share)};
    if (request.pooling == Pooling::kNone) {
      const auto& [yes, no] = std::pair(request.sampling.logit_bias[0].first, request.sampling.logit_bias[1].first);
      output.token_ids = {yes};
      output.logprobs = {{.chosen = {yes, share - 1.0f, 1}, .top = {{yes, share - 1.0f, 1}, {no, -1.0f, 2}}}};
    }
    {
      const std::lock_guard lock(mutex_);
      last_request_ = request;
    }
    submission.sink(std::move(output));
  }

  ModelInfo info_;
  std::unique_ptr<text::Tokenizer> tokenizer_;
  std::atomic<std::uint64_t> next_id_{1};
  mutable std::mutex mutex_;
  Request last_request_;  // guarded
};

ModelInfo classifier() {
  ModelInfo info;
  info.architecture = "qwen3";
  info.num_labels = 1;
  return info;
}

struct EngineOwner {
  LikesA engine;
};

class RankServer : public EngineOwner, public ServedEngine {
 public:
  explicit RankServer(ModelInfo info = classifier())
      : EngineOwner{LikesA(std::move(info))}, ServedEngine(engine) {}
};

double sigmoid(double logit) { return 1.0 / (1.0 + std::exp(-logit)); }

struct Answer {
  int status = 0;
  std::string body;
  std::string warning;
  std::unique_ptr<simdjson::dom::parser> parser = std::make_unique<simdjson::dom::parser>();  // stays where it is
  element json;

  double number(std::string_view pointer) { return json.at_pointer(pointer).get_double().value(); }
  std::string text(std::string_view pointer) { return std::string(json.at_pointer(pointer).get_string().value()); }
  std::size_t size(std::string_view pointer) { return json.at_pointer(pointer).get_array().value().size(); }
  std::string minified(std::string_view pointer) { return std::string(simdjson::minify(json.at_pointer(pointer).value())); }
};

Answer ask(const RankServer& server, const std::string& path, const std::string& body) {
  const ClientResponse response = HttpClient(server.port()).request("POST", path, body);
  Answer answer;
  answer.status = response.status;
  answer.body = response.body;
  answer.warning = response.header("x-kvasir-warning");
  answer.json = answer.parser->parse(response.body).value();
  return answer;
}

std::vector<std::int64_t> order_of(Answer& answer, const char* list = "/results") {
  std::vector<std::int64_t> order;
  const auto results = answer.json.at_pointer(list).get_array().value();
  for (const element result : results) order.push_back(result["index"].get_int64().value());
  return order;
}

constexpr char kBody[] = R"({"query":"q","documents":["b","aa","ab","b"]})";

TEST(Rerank, PutsTheBestDocumentFirst) {
  const RankServer server;
  for (const char* path : {"/v1/rerank", "/rerank", "/rerank/", "/v2/rerank", "/v1/rerank/"}) {
    Answer answer = ask(server, path, kBody);
    ASSERT_EQ(answer.status, 200) << answer.body;
    EXPECT_EQ(order_of(answer), (std::vector<std::int64_t>{1, 2, 0, 3})) << "equal scores keep their order";
    EXPECT_NEAR(answer.number("/results/0/relevance_score"), sigmoid(1.0), 1e-6);
    EXPECT_NEAR(answer.number("/results/1/relevance_score"), sigmoid(0.5), 1e-6);
    EXPECT_NEAR(answer.number("/results/3/relevance_score"), 0.5, 1e-6);
    EXPECT_EQ(answer.text("/model"), "fake");
    const auto last = static_cast<double>(server.engine.last_request().prompt_token_ids.size());
    EXPECT_EQ(answer.number("/usage/prompt_tokens"), 4 * last + 2);
    EXPECT_EQ(answer.number("/usage/total_tokens"), 4 * last + 2);
    EXPECT_EQ(answer.text("/meta/api_version/version"), std::string_view(path).starts_with("/v2") ? "2" : "1");
    EXPECT_EQ(answer.number("/meta/billed_units/search_units"), 1);
    EXPECT_TRUE(answer.text("/id").starts_with("rerank-"));
    EXPECT_TRUE(answer.json.at_pointer("/results/0/document").error()) << answer.body;
  }
}

TEST(Rerank, GivesTheBestAloneAndTheirDocuments) {
  const RankServer server;
  Answer answer = ask(server, "/v1/rerank",
                      R"({"query":{"text":"q"},"documents":["b",{"text":"aa","id":7}],"top_n":1,"return_documents":true})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(order_of(answer), (std::vector<std::int64_t>{1}));
  EXPECT_EQ(answer.minified("/results/0/document"), R"({"text":"aa","id":7})");
  answer = ask(server, "/v1/rerank", R"({"query":"q","documents":["b"],"return_documents":true,"use_activation":false})");
  EXPECT_EQ(answer.minified("/results/0/document"), R"({"text":"b"})");
  EXPECT_EQ(answer.number("/results/0/relevance_score"), 0.0);
}

TEST(Rerank, ReadsTheFieldsOfDocuments) {
  const RankServer server;
  const Answer answer = ask(server, "/v1/rerank",
                            R"({"query":"q","documents":[{"title":"T","text":"x","n":1}],"rank_fields":["text","title"]})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(asked_text(server.engine.last_request(), *server.engine.tokenizer()), "text: x\ntitle: T");
}

TEST(Rerank, AnswersWithAListWhereTextsAreGiven) {
  const RankServer server;
  Answer answer = ask(server, "/rerank",
                      R"({"query":"q","texts":["b","aa"],"raw_scores":true,"return_text":true,"truncate":false})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.minified("/0"), R"({"index":1,"score":1,"text":"aa"})");
  EXPECT_EQ(answer.size(""), 2u);
}

TEST(Rerank, AsksForOneTokenWhereTheModelSaysYesOrNo) {
  ModelInfo info;
  info.architecture = "qwen3";
  info.name = "Qwen3-Reranker";
  const RankServer server(info);
  Answer answer = ask(server, "/v1/rerank", R"({"query":"q","documents":["b","aa"],"instruction":"Find it."})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(order_of(answer), (std::vector<std::int64_t>{1, 0}));
  EXPECT_NEAR(answer.number("/results/0/relevance_score"), sigmoid(1.0), 1e-6);
  const Request request = server.engine.last_request();
  EXPECT_EQ(request.sampling.max_tokens, 1);
  EXPECT_NE(server.engine.tokenizer()->decode(request.prompt_token_ids).find("<Instruct>: Find it.\n<Query>: q\n"),
            std::string::npos);
}

TEST(Rerank, ComparesEmbeddingsOfTextsOnce) {
  ModelInfo info;
  info.architecture = "qwen3";
  info.has_pooling = true;
  const RankServer server(info);
  Answer answer = ask(server, "/v1/rerank", R"({"query":"ab","documents":["bb","ba","aa"]})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(order_of(answer), (std::vector<std::int64_t>{1, 0, 2}));
  EXPECT_NEAR(answer.number("/results/0/relevance_score"), 1.0, 1e-6);
  EXPECT_NEAR(answer.number("/results/1/relevance_score"), std::cos(0.5), 1e-6);
  EXPECT_EQ(answer.number("/usage/prompt_tokens"), 8) << "the query is embedded once";
}

// Angles are by the share of the letter a.
ModelInfo prompted_embedder() {
  ModelInfo info;
  info.architecture = "bert";
  info.is_encoder = info.has_pooling = true;
  info.embedding_size = 2;
  info.embedding_prompts = {{"query", "aaa"}, {"passage", "bbb"}};
  return info;
}

TEST(Rerank, PutsTheModelsPromptsBeforeQueriesAndDocuments) {
  const RankServer server(prompted_embedder());
  Answer answer = ask(server, "/v1/rerank", R"({"query":"b","documents":["a"]})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.number("/usage/prompt_tokens"), 8);
  EXPECT_NEAR(answer.number("/results/0/relevance_score"), std::cos(0.75 - 0.25), 1e-6);
}

TEST(Embeddings, HaveThePromptThatIsWanted) {
  const RankServer server(prompted_embedder());
  const auto prompt = [&](const std::string& wish) {
    const Answer answer = ask(server, "/v1/embeddings", R"({"input":"x")" + wish + "}");
    EXPECT_EQ(answer.status, 200) << answer.body;
    EXPECT_EQ(answer.warning, "");
    return server.engine.tokenizer()->decode(server.engine.last_request().prompt_token_ids);
  };
  EXPECT_EQ(prompt(""), "x");
  EXPECT_EQ(prompt(R"(,"prompt_name":"query")"), "aaax");
  EXPECT_EQ(prompt(R"(,"prompt":"say ")"), "say x");
  EXPECT_EQ(prompt(R"(,"input_type":"search_document")"), "bbbx");
  EXPECT_EQ(prompt(R"(,"task":"retrieval.query")"), "aaax");
  EXPECT_EQ(prompt(R"(,"input_type":"")"), "x");
}

TEST(Embeddings, NameThePromptsThatThereAre) {
  const RankServer server(prompted_embedder());
  Answer answer = ask(server, "/v1/embeddings", R"({"input":"x","prompt_name":"querry"})");
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(answer.text("/error/message"), "prompt_name: the model has no prompt \"querry\", it has passage, query");
  EXPECT_EQ(answer.text("/error/param"), "prompt_name");
  answer = ask(server, "/v1/embeddings", R"({"input":[["x",1]],"input_type":"query"})");
  EXPECT_EQ(answer.status, 400);
  answer = ask(server, "/v1/embeddings", R"({"input":[1,2],"input_type":"query"})");
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(answer.text("/error/message"), "input has token ids, and a prompt goes before texts alone");
}

TEST(Rerank, SaysInALineWhyAModelCannot) {
  ModelInfo info;
  info.architecture = "llama";
  const RankServer server(info);
  for (const auto& [path, body] : {std::pair{"/v1/rerank", kBody}, std::pair{"/v1/score", R"({"text_1":"a","text_2":"b"})"}}) {
    Answer answer = ask(server, path, body);
    EXPECT_EQ(answer.status, 400);
    EXPECT_EQ(answer.text("/error/message"), 
              "the model is no reranker: it has no classifier, no pooling for embeddings, and no such name");
    EXPECT_EQ(answer.text("/error/param"), "model");
  }
}

TEST(Rerank, NamesTheFaultOfABody) {
  const RankServer server;
  std::string many = R"({"query":"q","documents":["a")";
  for (int i = 0; i < 2048; ++i) many += R"(,"a")";
  const std::vector<std::vector<std::string>> faults = {
      {"/v1/rerank", R"({"documents":["a"]})", "query", "query is missing"},
      {"/v1/rerank", R"({"query":"q"})", "documents", "documents is missing"},
      {"/v1/rerank", R"({"query":"q","documents":[]})", "documents", "documents must not be empty"},
      {"/v1/rerank", R"({"query":"q","documents":"a"})", "documents", "documents must be an array, got a string"},
      {"/v1/rerank", R"({"query":"q","documents":["a",1]})", "documents[1]",
       "documents[1] must be a string or an object with a text, got an integer"},
      {"/v1/rerank", R"({"query":"q","documents":[{"title":"a"}]})", "documents[0].text", "documents[0].text is missing"},
      {"/v1/rerank", R"({"query":"q","documents":[{"t":"a"}],"rank_fields":["u"]})", "documents[0]",
       "documents[0] has none of the rank_fields"},
      {"/v1/rerank", R"({"query":"q","documents":["a"],"texts":["a"]})", "texts",
       "documents and texts are given, one is wanted"},
      {"/v1/rerank", R"({"query":"q","documents":["a"],"top_n":1.5})", "top_n", ""},
      {"/v1/rerank", R"({"query":"q","documents":["a"],"model":"other"})", "model", ""},
      {"/v1/rerank", many + "]}", "documents", "2049 texts in one request, the limit is 2048"},
      {"/v1/score", R"({"text_2":"a"})", "text_1", "text_1 is missing"},
      {"/v1/score", R"({"text_1":"a"})", "text_2", "text_2 is missing"},
      {"/v1/score", R"({"text_1":"a","queries":"a","text_2":"b"})", "queries",
       "queries is a second name of a field that is given"},
      {"/v1/score", R"({"text_1":["a","b"],"text_2":["a","b","c"]})", "text_1",
       "text_1 must have one text, or as many as text_2, 3, got 2"},
  };
  for (const auto& fault : faults) {
    Answer answer = ask(server, fault[0], fault[1]);
    EXPECT_GE(answer.status, 400) << fault[1].substr(0, 80);
    EXPECT_EQ(answer.text("/error/param"), fault[2]) << answer.body;
    EXPECT_NE(answer.text("/error/message").find(fault[3]), std::string::npos) << answer.body;
  }
  EXPECT_NE(ask(server, "/v1/rerank", R"({"query":"q","documents":["a"],"topn":1})").warning.find("did you mean \"top_n\"?"),
            std::string::npos);
}

TEST(Rerank, RefusesALongDocumentUnlessItMayBeCut) {
  ModelInfo info = classifier();
  const LikesA model(info);
  const Request empty = pair_request(pair_scoring_of(info, model.tokenizer()), *model.tokenizer(), {.query = "q"});
  const auto num_frame_tokens = static_cast<std::int32_t>(empty.prompt_token_ids.size());
  info.max_model_len_tokens = num_frame_tokens + 10;
  const RankServer server(info);
  const std::string document(100, 'a');
  Answer answer = ask(server, "/v1/rerank", fmt::format(R"({{"query":"q","documents":["b","{}"]}})", document));
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(answer.text("/error/param"), "documents[1]");
  EXPECT_NE(answer.text("/error/message").find("truncate: true cuts documents"), std::string::npos) << answer.body;
  answer = ask(server, "/v1/rerank", fmt::format(R"({{"query":"q","documents":["{}"],"truncate":true}})", document));
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.number("/usage/prompt_tokens"), num_frame_tokens + 10);
  answer = ask(server, "/v1/rerank", fmt::format(R"({{"query":"q","documents":["{}"],"max_tokens_per_doc":5}})", document));
  EXPECT_EQ(answer.number("/usage/prompt_tokens"), num_frame_tokens + 5);
}

TEST(Score, IsOfOneTextWithAllOrOfPairs) {
  const RankServer server;
  for (const char* path : {"/v1/score", "/score", "/score/"}) {
    Answer answer = ask(server, path, R"({"text_1":"q","text_2":["b","aa"]})");
    ASSERT_EQ(answer.status, 200) << answer.body;
    EXPECT_EQ(answer.text("/object"), "list");
    EXPECT_EQ(answer.size("/data"), 2u);
    EXPECT_EQ(answer.minified("/data/0"), R"({"index":0,"object":"score","score":0.5})");
    EXPECT_NEAR(answer.number("/data/1/score"), sigmoid(1.0), 1e-6);
    EXPECT_GT(answer.number("/usage/prompt_tokens"), 2.0);
    EXPECT_EQ(answer.number("/usage/completion_tokens"), 0);
    EXPECT_TRUE(answer.text("/id").starts_with("score-"));
  }
  Answer answer = ask(server, "/v1/score", R"({"queries":["q","r"],"documents":["b","ab"],"use_activation":false})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.number("/data/0/score"), 0.0);
  EXPECT_EQ(answer.number("/data/1/score"), 0.5);
}

}  // namespace
}  // namespace kvasir::server::rerank_test
