#include "server/http/foreign_path.h"

namespace kvasir::server::http {
namespace {

// "*" at the end of a path is any rest. A row of a path that is served here says nothing, and may go.
struct ForeignPath {
  std::string_view path, hint;
};

constexpr std::string_view kChat = "/v1/chat/completions", kCompletions = "/v1/completions";
constexpr std::string_view kEmbeddings = "/v1/embeddings", kModels = "/v1/models";
constexpr std::string_view kTextOnly = "text is all that is read and made here";
constexpr std::string_view kNoTraining = "models are not trained here";
constexpr std::string_view kNoAssistants = "assistants and threads are not kept; /v1/responses keeps conversations";
constexpr std::string_view kNoVectorStore = "no vectors are kept here; /v1/embeddings makes them";
constexpr std::string_view kOneModel = "a server has the models that it was started with";

constexpr ForeignPath kForeignPaths[] = {
    // Ollama, llama-server
    {"/api/create", kOneModel},
    {"/api/copy", kOneModel},
    {"/api/push", kOneModel},
    {"/reranking", "/v1/rerank"},
    {"/v1/reranking", "/v1/rerank"},
    // vLLM, SGLang, text-generation-inference, text-embeddings-inference
    {"/generate_stream", kCompletions},
    {"/invocations", kChat},
    {"/v1/chat/completions/batch", "/v1/batches"},
    {"/pooling", kEmbeddings},
    {"/classify", "/v1/score"},
    {"/predict", "/v1/score"},
    {"/embed", kEmbeddings},
    {"/embed_all", kEmbeddings},
    {"/embed_sparse", kEmbeddings},
    {"/similarity", "/v1/score"},
    {"/info", kModels},
    {"/get_model_info", kModels},
    {"/get_server_info", "/version"},
    {"/server_info", "/version"},
    {"/health_generate", "/health/ready"},
    // OpenAI, Azure, Anthropic, Cohere, Gemini
    {"/v1", kModels},
    {"/v1/engines", kModels},
    {"/v1/chat", kChat},
    {"/v2/chat", kChat},
    {"/v1/complete", "/v1/messages"},
    {"/v1/message", "/v1/messages"},
    {"/v1/messages/batches*", "/v1/batches"},
    {"/v1/edits", kChat},
    {"/v1/embed", kEmbeddings},
    {"/v2/embed", kEmbeddings},
    {"/v1beta/models*", kChat},
    {"/v1/realtime*", kTextOnly},
    {"/v1/audio/*", kTextOnly},
    {"/v1/images/*", kTextOnly},
    {"/v1/videos*", kTextOnly},
    {"/v1/moderations", "texts are not judged here"},
    {"/v1/fine_tuning/*", kNoTraining},
    {"/v1/fine-tunes*", kNoTraining},
    {"/v1/evals*", kNoTraining},
    {"/v1/assistants*", kNoAssistants},
    {"/v1/threads*", kNoAssistants},
    {"/v1/conversations*", kNoAssistants},
    {"/v1/vector_stores*", kNoVectorStore},
    {"/v1/uploads*", "/v1/files"},
    {"/v1/containers*", "no code is run here"},
    // LM Studio, KoboldCpp, text-generation-webui
    {"/api/v0/models*", kModels},
    {"/api/v1/models", kModels},
    {"/api/v1/model", kModels},
    {"/api/v1/generate", kCompletions},
    {"/api/latest/generate", kCompletions},
    {"/api/extra/generate/stream", kCompletions},
    {"/v1/internal/model/*", kModels},
    {"/v1/internal/encode", "/tokenize"},
    {"/v1/internal/token-count", "/tokenize"},
    {"/v1/internal/decode", "/detokenize"},
    // Probes and pages
    {"/livez", "/health/live"},
    {"/healthz", "/health"},
    {"/ready", "/health/ready"},
    {"/readyz", "/health/ready"},
    {"/startupz", "/health/ready"},
    {"/status", "/health"},
    {"/docs", "/openapi.json"},
    {"/redoc", "/openapi.json"},
    {"/swagger*", "/openapi.json"},
};

bool is_of(std::string_view path, std::string_view pattern) {
  if (!pattern.ends_with('*')) return path == pattern;
  return path.starts_with(pattern.substr(0, pattern.size() - 1));
}

}  // namespace

std::string_view hint_for_path(std::string_view path) {
  if (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  for (const ForeignPath& foreign : kForeignPaths) {
    if (is_of(path, foreign.path)) return foreign.hint;
  }
  return {};
}

}  // namespace kvasir::server::http
