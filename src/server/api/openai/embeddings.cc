// POST /v1/embeddings
#include <memory>
#include <utility>
#include <vector>

#include "server/api/endpoint.h"
#include "server/api/field_reference.h"
#include "server/api/generation.h"
#include "server/api/openai/embedding_format.h"
#include "server/api/openai/embedding_request.h"
#include "server/api/openai/embedding_start.h"

namespace kvasir::server::api {
namespace {

ApiStatus start_embeddings(ApiContext& context, const Writer& writer) {
  KVASIR_TRY(EmbeddingRequest asked, read_request(context, *writer, parse_embedding_request));
  const bool is_base64 = asked.is_base64;
  KVASIR_TRY(std::vector<Request> requests,
             embedding_requests(context, std::move(asked), *writer, context.ids.next("embd-")));
  auto format = std::make_unique<EmbeddingFormat>(context.model_name, is_base64);
  Generation::start_scoring(context, writer, std::move(format), std::move(requests));
  return {};
}

}  // namespace

extern const Endpoint kEmbeddings = {
    .method = "POST",
    .pattern = "/v1/embeddings",
    .meaning = "texts as vectors of length 1",
    .answer = [](ApiContext& context, const Writer& writer,
                 const std::string&) { respond_unless(start_embeddings(context, writer), *writer); },
    .fields = [] { return FieldTable{.title = "Fields", .own = rows_of(embedding_fields()), .shared = {}}; },
};

}  // namespace kvasir::server::api
