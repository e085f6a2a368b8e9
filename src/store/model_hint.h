// The name here of a model that is called as elsewhere.
#pragma once

#include <string>
#include <string_view>

namespace kvasir::store {

// Addresses and names of the hub ("https://huggingface.co/OWNER/NAME", "hf.co/OWNER/NAME:Q8_0", "OWNER/NAME") as
// hf:..., those of Ollama ("ollama.com/library/NAME") as ollama:...; empty: it is like none of these.
std::string name_of_foreign_model(std::string_view text);

}  // namespace kvasir::store
