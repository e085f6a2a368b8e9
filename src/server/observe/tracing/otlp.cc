#include "server/observe/tracing/otlp.h"

#include "server/observe/tracing/proto_reader.h"
#include "server/observe/tracing/proto_writer.h"

namespace kvasir::server::observe {
namespace {

constexpr std::uint32_t kSampled = 0x001, kKnowsParent = 0x100, kParentIsRemote = 0x200;  // SpanFlags
constexpr std::uint64_t kStatusError = 2;

std::string_view view(std::span<const std::uint8_t> id) {
  return {reinterpret_cast<const char*>(id.data()), id.size()};
}

std::uint64_t unix_nanoseconds(Span::Time time) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count());
}

// The fields of an AnyValue.
struct ValueWriter {
  ProtoWriter& out;

  void operator()(const std::string& text) const { out.bytes(1, text); }
  void operator()(bool flag) const { out.varint(2, flag ? 1 : 0); }
  void operator()(std::int64_t number) const { out.varint(3, static_cast<std::uint64_t>(number)); }
  void operator()(double number) const { out.real(4, number); }
  void operator()(const std::vector<std::string>& texts) const {
    out.message(5, [&](ProtoWriter& list) {
      for (const std::string& text : texts) {
        list.message(1, [&](ProtoWriter& value) { value.bytes(1, text); });
      }
    });
  }
};

void write_attributes(ProtoWriter& out, int field, const std::vector<Attribute>& attributes) {
  for (const Attribute& attribute : attributes) {
    out.message(field, [&](ProtoWriter& pair) {
      pair.bytes(1, attribute.name);
      pair.message(2, [&](ProtoWriter& value) { std::visit(ValueWriter{value}, attribute.value); });
    });
  }
}

void write_span(ProtoWriter& out, const Span& span) {
  out.bytes(1, view(span.trace_id)).bytes(2, view(span.span_id));
  if (!span.trace_state.empty()) out.bytes(3, span.trace_state);
  if (span.parent_span_id != SpanId{}) out.bytes(4, view(span.parent_span_id));
  out.bytes(5, span.name).varint(6, static_cast<std::uint64_t>(span.kind));
  out.fixed64(7, unix_nanoseconds(span.begin)).fixed64(8, unix_nanoseconds(span.end));
  write_attributes(out, 9, span.attributes);
  if (span.is_error) out.message(15, [](ProtoWriter& status) { status.varint(3, kStatusError); });
  out.fixed32(16, kSampled | kKnowsParent | (span.has_remote_parent ? kParentIsRemote : 0));
}

}  // namespace

std::string export_request(const std::vector<Attribute>& resource, std::string_view version,
                           std::span<const Span> spans) {
  std::string body;
  ProtoWriter(body).message(1, [&](ProtoWriter& resource_spans) {
    resource_spans.message(1, [&](ProtoWriter& out) { write_attributes(out, 1, resource); });
    resource_spans.message(2, [&](ProtoWriter& scope_spans) {
      scope_spans.message(1, [&](ProtoWriter& scope) { scope.bytes(1, "kvasir.server").bytes(2, version); });
      for (const Span& span : spans) {
        scope_spans.message(2, [&](ProtoWriter& out) { write_span(out, span); });
      }
    });
  });
  return body;
}

PartialSuccess parse_export_response(std::string_view body) {
  PartialSuccess result;
  ProtoReader response(body);
  while (const auto field = response.next()) {
    if (field->number != 1) continue;
    ProtoReader partial(field->bytes);
    while (const auto inner = partial.next()) {
      if (inner->number == 1) result.num_rejected_spans = static_cast<std::int64_t>(inner->value);
      if (inner->number == 2) result.message = inner->bytes;
    }
  }
  return result;
}

std::string parse_refusal(std::string_view body) {
  ProtoReader status(body);
  while (const auto field = status.next()) {
    if (field->number == 2) return std::string(field->bytes);
  }
  return {};
}

}  // namespace kvasir::server::observe
