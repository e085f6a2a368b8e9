// How folders of the hub become what the architectures read: a table per model_type, a line each in folders.def.
#pragma once

#include "io/hf_mapping.h"

namespace kvasir::model {

#define KVASIR_FOLDER(name) extern const io::HfMapping name;
#include "model/folders/folders.def"
#undef KVASIR_FOLDER


}  // namespace kvasir::model
