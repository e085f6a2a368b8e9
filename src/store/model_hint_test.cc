#include "store/model_hint.h"

#include <gtest/gtest.h>

namespace kvasir::store {
namespace {

TEST(ModelHint, KnowsHowOthersNameModelsOfTheHub) {
  for (const char* const text :
       {"Qwen/Qwen3-0.6B", "https://huggingface.co/Qwen/Qwen3-0.6B", "http://hf.co/Qwen/Qwen3-0.6B",
        "huggingface.co/Qwen/Qwen3-0.6B/", "hf://Qwen/Qwen3-0.6B", "hf:https://huggingface.co/Qwen/Qwen3-0.6B",
        "https://huggingface.co/Qwen/Qwen3-0.6B/tree/main", "https://huggingface.co/Qwen/Qwen3-0.6B?library=gguf"}) {
    EXPECT_EQ(name_of_foreign_model(text), "hf:Qwen/Qwen3-0.6B") << text;
  }
  EXPECT_EQ(name_of_foreign_model("hf.co/a/b:Q8_0"), "hf:a/b:Q8_0");
  EXPECT_EQ(name_of_foreign_model("https://huggingface.co/a/b/resolve/main/x/b.gguf?download=true"), "hf:a/b:x/b.gguf");
  EXPECT_EQ(name_of_foreign_model("https://huggingface.co/a/b/blob/v1/b.gguf"), "hf:a/b@v1:b.gguf");
}

TEST(ModelHint, KnowsNamesOfOllama) {
  EXPECT_EQ(name_of_foreign_model("https://ollama.com/library/llama3.2:1b"), "ollama:llama3.2:1b");
  EXPECT_EQ(name_of_foreign_model("ollama.com/ann/mine"), "ollama:ann/mine");
  EXPECT_EQ(name_of_foreign_model("ollama/llama3.2"), "ollama:llama3.2");
}

TEST(ModelHint, SaysNothingOfOtherTexts) {
  for (const char* const text : {"", "model", "./model", "/srv/model", "models/a.gguf", "a/b/c", "a//b", "../a/b",
                                 "https://example.com/a/b", "https://huggingface.co/", "hf:a/b", "ollama:", "a/",
                                 "https://huggingface.co/a/b/discussions/1"}) {
    EXPECT_EQ(name_of_foreign_model(text), "") << text;
  }
}

}  // namespace
}  // namespace kvasir::store
