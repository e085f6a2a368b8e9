// Between messages of kvasir.v1 and the JSON of the HTTP API, whose names they share.
#pragma once

#include <google/protobuf/message.h>

#include <string_view>

#include "base/json_writer.h"
#include "server/api_error.h"

namespace kvasir::server::carriers {

// Error (400) naming a number that JSON cannot say: NaN or an infinity.
ApiStatus check_finite(const google::protobuf::Message& message);

// The fields that are set, under their names, as members of the object that is open. Numbers stay numbers,
// where protobuf's own JSON makes strings of those of 64 bits. The member of `alias` is called `name`
// instead. Requires: check_finite().
void append_members(JsonWriter& json, const google::protobuf::Message& message, std::string_view alias = {},
                    std::string_view name = {});

// Members that the message has no field for are left out. False: it is no such object.
bool read_message(std::string_view json, google::protobuf::Message& message);

}  // namespace kvasir::server::carriers
