#include "model/folders/folders.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "base/printable.h"
#include "model/model.h"

namespace kvasir::model {
namespace {

#define KVASIR_FOLDER(name) &name,
const io::HfMapping* const kFolders[] = {
#include "model/folders/folders.def"
};
#undef KVASIR_FOLDER

}  // namespace

Result<const io::HfMapping*> hf_mapping(std::string_view model_type, bool is_bidirectional) {
  std::vector<std::string_view> known;
  for (const io::HfMapping* mapping : kFolders) {
    for (const std::string_view type : mapping->model_types) {
      if (type.empty()) continue;
      if (type == model_type && mapping->is_bidirectional == is_bidirectional) return mapping;
      if (mapping->is_bidirectional == is_bidirectional) known.push_back(type);
    }
  }
  if (is_bidirectional) {
    return make_error(ErrorKind::kBadFile,
                      fmt::format("model_type '{}' with use_bidirectional_attention is not supported ({} are)",
                                  printable(model_type), fmt::join(known, ", ")));
  }
  return make_error(ErrorKind::kBadFile, fmt::format("model_type '{}' is not supported ({} are)",
                                                     printable(model_type), fmt::join(known, ", ")));
}

}  // namespace kvasir::model
