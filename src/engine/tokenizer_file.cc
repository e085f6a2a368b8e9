#include "engine/tokenizer_file.h"

#include <limits>

#include "engine/text_loader.h"
#include "io/weight_source.h"

namespace kvasir {

Result<std::unique_ptr<text::Tokenizer>> open_tokenizer(const std::string& path) {
  KVASIR_TRY(const auto source, io::open_gguf(path));
  // Nobody computes logits here, so there is no vocabulary size to compare with.
  KVASIR_TRY(auto tokenizer, load_tokenizer(*source, std::numeric_limits<std::int32_t>::max()));
  if (tokenizer == nullptr) return make_error(ErrorKind::kBadFile, path + ": the file has no tokenizer");
  return tokenizer;
}

}  // namespace kvasir
