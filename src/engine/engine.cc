// What every engine does alike, on top of its virtual members.
#include "kvasir/engine.h"

#include <utility>

#include "text/tokenizer.h"

namespace kvasir {

Result<RequestId> Engine::submit(Request request, OutputSink sink) {
  std::vector<Submission> one;
  one.push_back({std::move(request), std::move(sink)});
  KVASIR_TRY(const std::vector<RequestId> ids, submit(std::move(one)));
  return ids.front();
}

Result<std::vector<TokenId>> Engine::encode(std::string_view text) const {
  if (tokenizer() == nullptr) {
    return make_error(ErrorKind::kBadFile, model_info().name + ": the model has no tokenizer");
  }
  return tokenizer()->encode(text, {.parse_special = false, .add_special = true});
}

}  // namespace kvasir
