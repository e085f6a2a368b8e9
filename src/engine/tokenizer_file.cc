#include "engine/tokenizer_file.h"

#include "base/printable.h"
#include "engine/text_loader.h"
#include "io/weight_source.h"

namespace kvasir {

Result<std::unique_ptr<text::Tokenizer>> open_tokenizer(const std::string& path) {
  KVASIR_TRY(const auto source, io::open_gguf(path));
  KVASIR_TRY(auto tokenizer, load_tokenizer(*source));
  if (tokenizer == nullptr)
    return make_error(ErrorKind::kBadFile, printable_line(path) + ": the file has no tokenizer");
  return tokenizer;
}

}  // namespace kvasir
