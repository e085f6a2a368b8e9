// Between messages of kvasir.v1 and the JSON of the HTTP API, whose names they share.
#pragma once

#include <google/protobuf/message.h>

#include <string_view>

#include "base/json_writer.h"

namespace kvasir::server {

// The fields that are set, under their names, as members of the object that is open. Numbers stay numbers,
// where protobuf's own JSON makes strings of those of 64 bits; NaN and infinities become strings, which no
// field takes. The member of `alias` is called `name` instead.
void append_members(JsonWriter& json, const google::protobuf::Message& message, std::string_view alias = {},
                    std::string_view name = {});

// Members that the message has no field for are left out. False: it is no such object.
bool read_message(std::string_view json, google::protobuf::Message& message);

}  // namespace kvasir::server
