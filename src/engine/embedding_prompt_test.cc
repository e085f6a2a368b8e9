#include "engine/embedding_prompt.h"

#include <gtest/gtest.h>

#include <string>

namespace kvasir::embedding_prompt_test {
namespace {

ModelInfo gemma() {
  ModelInfo info;
  info.embedding_prompts = {{"query", "task: search result | query: "},
                            {"document", "title: none | text: "},
                            {"Clustering", "task: clustering | query: "}};
  return info;
}

std::string prompt_of(const ModelInfo& info, const PromptWish& wish) {
  const auto prompt = embedding_prompt(info, wish);
  return prompt ? *prompt : prompt.error().message;
}

TEST(EmbeddingPrompt, IsTheRequestsOrTheModels) {
  EXPECT_EQ(prompt_of(gemma(), {}), "");
  EXPECT_EQ(prompt_of(gemma(), {.prompt = "say: "}), "say: ");
  EXPECT_EQ(prompt_of(gemma(), {.prompt_name = "Clustering"}), "task: clustering | query: ");
  ModelInfo info = gemma();
  info.default_prompt_name = "document";
  EXPECT_EQ(prompt_of(info, {}), "title: none | text: ");
  EXPECT_EQ(prompt_of(info, {.prompt = ""}), "");
}

TEST(EmbeddingPrompt, IsByWhatTheTextsAreFor) {
  for (const char* type : {"query", "search_query", "retrieval.query", "QUERY"}) {
    EXPECT_EQ(prompt_of(gemma(), {.input_type = type}), "task: search result | query: ") << type;
  }
  for (const char* type : {"document", "passage", "search_document", "retrieval.passage"}) {
    EXPECT_EQ(prompt_of(gemma(), {.input_type = type}), "title: none | text: ") << type;
  }
  EXPECT_EQ(prompt_of(gemma(), {.input_type = "clustering"}), "task: clustering | query: ");
  ModelInfo e5;
  e5.embedding_prompts = {{"passage", "passage: "}};
  EXPECT_EQ(prompt_of(e5, {.input_type = "document"}), "passage: ");
  EXPECT_EQ(prompt_of(e5, {.input_type = "query"}), "");
  EXPECT_EQ(prompt_of(ModelInfo(), {.input_type = "anything"}), "");
}

TEST(EmbeddingPrompt, IsRefusedWhereThereIsNone) {
  EXPECT_EQ(prompt_of(gemma(), {.prompt_name = "querry"}),
            "prompt_name: the model has no prompt \"querry\", it has Clustering, document, query");
  EXPECT_EQ(prompt_of(ModelInfo(), {.prompt_name = "query"}), "prompt_name: the model has no prompt \"query\"");
  EXPECT_EQ(prompt_of(gemma(), {.input_type = "image"}),
            "input_type: the model has no prompt \"image\", it has Clustering, document, query");
  EXPECT_EQ(prompt_of(gemma(), {.prompt = "a", .prompt_name = "query"}),
            "prompt_name: prompt is given too, one is wanted");
}

TEST(EmbeddingPrompt, ComesFromTheFile) {
  const io::Metadata metadata({{"general.name", std::string("x")},
                               {"sentence_transformers.default_prompt_name", std::string("query")},
                               {"sentence_transformers.prompt.query", std::string("query: ")}});
  ModelInfo info;
  read_embedding_prompts(metadata, info);
  EXPECT_EQ(prompt_of(info, {}), "query: ");
}

}  // namespace
}  // namespace kvasir::embedding_prompt_test
