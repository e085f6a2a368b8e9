#include "server/observe/tracing/tracing_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/beast/core/string.hpp>
#include <charconv>

#include "base/printable.h"
#include "base/utf8.h"
#include "server/observe/tracing/member_list.h"

namespace kvasir::server::observe {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;
using Warn = std::function<void(std::string_view)>;

// "a=1,b=two%20words", as W3C Baggage has it. Nothing where it is something else.
std::optional<Pairs> parse_pairs(std::string_view text) {
  Pairs pairs;
  while (!text.empty()) {
    const std::string_view pair = take_member(text);
    if (pair.empty()) continue;
    const std::size_t equals = pair.find('=');
    if (equals == pair.npos || equals == 0) return {};
    std::string value = http::percent_decoded(trimmed(pair.substr(equals + 1)));
    if (!is_valid_utf8(value)) return {};
    pairs.emplace_back(trimmed(pair.substr(0, equals)), std::move(value));
  }
  return pairs;
}

class Reader {
 public:
  Reader(const TracingFlags& flags, const Variables& variables, const Warn& warn)
      : flags_(flags), variables_(variables), warn_(warn) {}

  Result<std::optional<CollectorUrl>> url() const;
  Result<std::vector<http::Header>> headers() const;
  Sampler sampler() const;
  Pairs resource() const;
  std::chrono::milliseconds timeout() const;
  std::string ca_file() const { return of_traces("CERTIFICATE").second.value_or(""); }
  void warn_of_protocol() const;

 private:
  using Named = std::pair<std::string, std::optional<std::string>>;

  // OTEL_EXPORTER_OTLP_TRACES_<rest> before OTEL_EXPORTER_OTLP_<rest>, with the name of the one that is set.
  Named of_traces(const std::string& rest) const {
    Named named{"OTEL_EXPORTER_OTLP_TRACES_" + rest, {}};
    named.second = variables_(named.first.c_str());
    if (named.second) return named;
    named.first = "OTEL_EXPORTER_OTLP_" + rest;
    named.second = variables_(named.first.c_str());
    return named;
  }
  bool is_turned_off() const {
    const auto disabled = variables_("OTEL_SDK_DISABLED"), exporter = variables_("OTEL_TRACES_EXPORTER");
    return (disabled && boost::beast::iequals(*disabled, "true")) || (exporter && *exporter == "none");
  }
  std::optional<double> share_argument() const;

  const TracingFlags& flags_;
  const Variables& variables_;
  const Warn& warn_;
};

Result<std::optional<CollectorUrl>> Reader::url() const {
  std::string text = flags_.endpoint, name = "--otlp-endpoint";
  UrlUse use = UrlUse::kBase;
  if (text.empty()) {
    const Named named = of_traces("ENDPOINT");
    if (!named.second || is_turned_off()) return std::optional<CollectorUrl>();
    name = named.first;
    text = *named.second;
    use = name == "OTEL_EXPORTER_OTLP_ENDPOINT" ? UrlUse::kBase : UrlUse::kAsIs;
  }
  auto url = parse_collector_url(text, use);
  if (url) return std::optional(*std::move(url));
  return make_error(ErrorKind::kUsage, fmt::format("{} {}", name, url.error().message), "otlp-endpoint");
}

// The error leaves out the value, which is a key.
Result<std::vector<http::Header>> Reader::headers() const {
  std::vector<http::Header> headers;
  const auto [name, text] = of_traces("HEADERS");
  if (!text) return headers;
  const auto pairs = parse_pairs(*text);
  const auto bad = [&variable = name] {
    return make_error(ErrorKind::kUsage, fmt::format("{} takes headers as name=value,name=value", variable),
                      variable);
  };
  if (!pairs) return bad();
  constexpr std::string_view kNoToken = "()<>@,;:\\\"/[]?={} \t";
  for (const auto& [header, value] : *pairs) {
    const bool is_token = header.find_first_of(kNoToken) == header.npos &&
                          std::ranges::all_of(header, [](char c) { return c > ' ' && c <= '~'; });
    const bool is_value = std::ranges::none_of(
        value, [](char c) { return (static_cast<unsigned char>(c) < ' ' && c != '\t') || c == 0x7F; });
    if (!is_token || !is_value) return bad();
    headers.push_back({header, value});
  }
  return headers;
}

std::optional<double> Reader::share_argument() const {
  const auto text = variables_("OTEL_TRACES_SAMPLER_ARG");
  if (!text) return {};
  double share = 0.0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), share);
  const bool is_number = error == std::errc() && end == text->data() + text->size();
  if (is_number && share >= 0.0 && share <= 1.0) return share;
  warn_(fmt::format("OTEL_TRACES_SAMPLER_ARG takes a number from 0 to 1, not '{}', and counts as 1",
                    printable(*text)));
  return {};
}

Sampler Reader::sampler() const {
  if (flags_.share) return Sampler::of_new_traces(*flags_.share);
  const auto name = variables_("OTEL_TRACES_SAMPLER");
  if (!name) return {};
  const bool has_share = name->ends_with("traceidratio");
  const auto sampler = Sampler::named(*name, has_share ? share_argument().value_or(1.0) : 1.0);
  if (sampler) return *sampler;
  warn_(fmt::format("OTEL_TRACES_SAMPLER: '{}' is not known here, and counts as parentbased_always_on",
                    printable(*name)));
  return {};
}

Pairs Reader::resource() const {
  Pairs resource;
  if (const auto text = variables_("OTEL_RESOURCE_ATTRIBUTES")) {
    if (auto pairs = parse_pairs(*text)) {
      resource = *std::move(pairs);
    } else {
      warn_("OTEL_RESOURCE_ATTRIBUTES takes name=value,name=value, and is left out");
    }
  }
  const auto name = variables_("OTEL_SERVICE_NAME");
  const auto is_name = [](const auto& pair) { return pair.first == "service.name"; };
  if (name) std::erase_if(resource, is_name);
  if (std::ranges::none_of(resource, is_name)) {
    resource.emplace_back("service.name", to_valid_utf8(name.value_or("kvasir")));
  }
  return resource;
}

std::chrono::milliseconds Reader::timeout() const {
  constexpr std::chrono::milliseconds kDefault{10'000};
  constexpr int kMaxMs = 600'000;
  const auto [name, text] = of_traces("TIMEOUT");
  if (!text) return kDefault;
  int ms = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), ms);
  if (error == std::errc() && end == text->data() + text->size() && ms > 0 && ms <= kMaxMs) {
    return std::chrono::milliseconds(ms);
  }
  warn_(fmt::format("{} takes milliseconds from 1 to {}, not '{}', and counts as {}", name, kMaxMs,
                    printable(*text), kDefault.count()));
  return kDefault;
}

void Reader::warn_of_protocol() const {
  const auto [name, text] = of_traces("PROTOCOL");
  if (!text || *text == "http/protobuf") return;
  warn_(fmt::format("{} is '{}', but spans are sent as http/protobuf", name, printable(*text)));
}

}  // namespace

Result<std::optional<TracingConfig>> make_tracing_config(const TracingFlags& flags,
                                                         const Variables& variables, const Warn& warn) {
  const Reader reader(flags, variables, warn);
  KVASIR_TRY(auto url, reader.url());
  if (!url) return std::optional<TracingConfig>();
  TracingConfig config{.url = *std::move(url),
                       .headers = {},
                       .ca_file = reader.ca_file(),
                       .sampler = reader.sampler(),
                       .resource = reader.resource(),
                       .version = {},
                       .timeout = reader.timeout(),
                       .pending = {},
                       .backoff = {}};
  KVASIR_TRY(config.headers, reader.headers());
  reader.warn_of_protocol();
  return std::optional(std::move(config));
}

}  // namespace kvasir::server::observe
