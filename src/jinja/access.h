// Looking into values: items, attributes, slices, lengths.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "jinja/runtime.h"

namespace kvasir::jinja {

// The items that a for loop sees: items of a list, keys of a dict, characters of a string. Reads an Iterator to its end.
Result<std::shared_ptr<const List>> iterate(Runtime& runtime, const Value& value);
// len(value); empty when the value has no length.
std::optional<std::size_t> length_of(const Value& value);

// `object.name`, `object[key]` and `object[start:stop:step]` under the immutable sandbox's rules. An
// absent one is undefined. Slice bounds that the template left out are none.
Result<Value> get_attribute(Runtime& runtime, const Value& object, const std::string& name);
Result<Value> get_item(Runtime& runtime, const Value& object, const Value& key);
Result<Value> get_slice(Runtime& runtime, const Value& object, const Value& start, const Value& stop,
                        const Value& step);
// A method or object attribute, without falling back to dict keys; empty when there is none.
std::optional<Value> find_attribute(const Value& object, const std::string& name);

}  // namespace kvasir::jinja
