// Embeddings: {"object":"list"}, in one piece.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "server/api/answer_format.h"

namespace kvasir::server::api {

class EmbeddingFormat final : public AnswerFormat {
 public:
  // With is_base64 each embedding is a text: its 32-bit floats, little-endian, in base64 (RFC 4648).
  EmbeddingFormat(std::string model, bool is_base64) : model_(std::move(model)), is_base64_(is_base64) {}

  std::string whole(const std::vector<ChoiceResult>& choices, const Usage& usage) override;
  // Nobody can ask for a stream.
  void append_events(std::int32_t choice, const RequestOutput& output, const Usage& usage,
                     http::Events& events) override;
  void append_last_events(const Usage& usage, http::Events& events) override;

 private:
  const std::string model_;
  const bool is_base64_;
};

}  // namespace kvasir::server::api
