#include "server/carriers/grpc/message_json.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/util/json_util.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/check.h"

namespace kvasir::server::carriers {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

ApiStatus check_finite(const std::string& name, double number) {
  if (std::isfinite(number)) return {};
  return bad_request(fmt::format("{}: {} is no finite number", name, number), name);
}

ApiStatus check_finite_values(const Message& message, const FieldDescriptor& map) {
  const Reflection& reflection = *message.GetReflection();
  for (int i = 0; i < reflection.FieldSize(message, &map); ++i) {
    const Message& entry = reflection.GetRepeatedMessage(message, &map, i);
    const Reflection& of_entry = *entry.GetReflection();
    const std::int32_t key = of_entry.GetInt32(entry, map.message_type()->map_key());
    KVASIR_CHECKED(check_finite(fmt::format("{}.{}", map.name(), key),
                                of_entry.GetDouble(entry, map.message_type()->map_value())));
  }
  return {};
}

void append_object(JsonWriter& json, const Message& message) {
  json.begin_object();
  append_members(json, message);
  json.end_object();
}

// A field that is not repeated.
void append_value(JsonWriter& json, const Message& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      json.value(reflection.GetInt32(message, &field));
      return;
    case FieldDescriptor::CPPTYPE_UINT64:
      json.value(reflection.GetUInt64(message, &field));
      return;
    case FieldDescriptor::CPPTYPE_DOUBLE:
      json.value(reflection.GetDouble(message, &field));
      return;
    case FieldDescriptor::CPPTYPE_BOOL:
      json.value(reflection.GetBool(message, &field));
      return;
    case FieldDescriptor::CPPTYPE_STRING:
      json.value(reflection.GetString(message, &field));
      return;
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return append_object(json, reflection.GetMessage(message, &field));
    default:
      CHECK(!"a field of kvasir.v1 that requests have, of a type that is written");
  }
}

void append_list(JsonWriter& json, const Message& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  json.begin_array();
  for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        json.value(reflection.GetRepeatedInt32(message, &field, i));
        break;
      case FieldDescriptor::CPPTYPE_STRING:
        json.value(reflection.GetRepeatedString(message, &field, i));
        break;
      case FieldDescriptor::CPPTYPE_MESSAGE:
        append_object(json, reflection.GetRepeatedMessage(message, &field, i));
        break;
      default:
        CHECK(!"a list of kvasir.v1 that requests have, of a type that is written");
    }
  }
  json.end_array();
}

// A map from 32-bit integers to numbers.
void append_map(JsonWriter& json, const Message& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  json.begin_object();
  for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
    const Message& entry = reflection.GetRepeatedMessage(message, &field, i);
    const Reflection& of_entry = *entry.GetReflection();
    json.key(std::to_string(of_entry.GetInt32(entry, field.message_type()->map_key())));
    json.value(of_entry.GetDouble(entry, field.message_type()->map_value()));
  }
  json.end_object();
}

}  // namespace

ApiStatus check_finite(const Message& message) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->is_map()) {
      KVASIR_CHECKED(check_finite_values(message, *field));
    } else if (!field->is_repeated() && field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE) {
      KVASIR_CHECKED(check_finite(field->name(), message.GetReflection()->GetDouble(message, field)));
    }
  }
  return {};
}

void append_members(JsonWriter& json, const Message& message, std::string_view alias, std::string_view name) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    json.key(field->name() == alias ? name : std::string_view(field->name()));
    if (field->is_map()) {
      append_map(json, message, *field);
    } else if (field->is_repeated()) {
      append_list(json, message, *field);
    } else {
      append_value(json, message, *field);
    }
  }
}

bool read_message(std::string_view json, Message& message) {
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  const google::protobuf::StringPiece text(json.data(), json.size());
  return google::protobuf::util::JsonStringToMessage(text, &message, options).ok();
}

}  // namespace kvasir::server::carriers
