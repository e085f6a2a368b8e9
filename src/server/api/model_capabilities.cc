#include "server/api/model_capabilities.h"

#include "server/api/thinking.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace kvasir::server::api {

std::vector<std::string_view> capabilities_of(const ApiContext& context) {
  const ModelInfo& model = context.engine.model_info();
  const text::Tokenizer* const tokenizer = context.engine.tokenizer();
  const text::ChatTemplate* const chat_template = context.engine.chat_template();
  std::vector<std::string_view> names;
  if (model.architecture.empty()) return names;
  if (!model.is_encoder) names.push_back("completion");
  if (model.is_encoder || model.has_pooling) names.push_back("embedding");
  if (tokenizer == nullptr || model.is_encoder) return names;
  if (chat_template != nullptr) names.push_back("tools");  // as text where the template knows none
  if (chat_template != nullptr && knows_thinking(chat_template->source())) names.push_back("thinking");
  if (tokenizer->vocab().fim_tokens().are_there()) names.push_back("insert");
  return names;
}

}  // namespace kvasir::server::api
