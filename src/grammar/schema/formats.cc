#include "grammar/schema/formats.h"

#include <fmt/format.h>

#include <string>

#include "grammar/regex/pattern.h"

namespace kvasir::grammar {
namespace {

// RFC 3339, with the lengths of months and leap years.
constexpr std::string_view kDate =
    "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|"
    "02-(?:0[1-9]|1[0-9]|2[0-8]))|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)";
constexpr std::string_view kTime =
    "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,9})?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])";
// ISO 8601, as appendix A of RFC 3339 has it.
constexpr std::string_view kDurationTime = "T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)";
constexpr std::string_view kDurationDate =
    "(?:[0-9]+D|[0-9]+M(?:[0-9]+D)?|[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?)";
constexpr std::string_view kLabel = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?";
constexpr std::string_view kByte = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
constexpr std::string_view kUuid = "[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}";
// RFC 3986 without literals of addresses.
constexpr std::string_view kPathCharacter = "(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})";
constexpr std::string_view kScheme = "[A-Za-z][A-Za-z0-9+.-]*";

std::string host_name() { return fmt::format("{0}(?:\\.{0})*", kLabel); }

std::string ipv6() {
  const std::string group = "[0-9A-Fa-f]{1,4}";
  std::string text = fmt::format("(?:(?:{0}:){{7}}{0}", group);
  for (int before = 0; before <= 7; ++before) {  // the :: stands for one group at least
    const std::string start = before == 0 ? std::string()
                                          : fmt::format("(?:{0}:){{{1}}}{0}", group, before - 1);
    const int most = 7 - before - (before == 0 ? 0 : 0);
    const std::string end = most <= 0 ? std::string() : fmt::format("(?:{0}(?::{0}){{0,{1}}})?", group, most - 1);
    text += fmt::format("|{}::{}", start, end);
  }
  return text + ")";
}

std::string query_and_fragment() { return fmt::format("(?:\\?(?:{0}|[/?])*)?(?:#(?:{0}|[/?])*)?", kPathCharacter); }

std::string authority_and_path() {
  return fmt::format("//(?:(?:(?:[A-Za-z0-9._~!$&'()*+,;=:-]|%[0-9A-Fa-f]{{2}})*@)?{}(?::[0-9]{{0,5}})?)?(?:/{}*)*",
                     "(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+", kPathCharacter);
}

// A path without an authority does not begin with two slashes.
std::string absolute_path() { return fmt::format("/(?:{0}+(?:/{0}*)*)?", kPathCharacter); }

std::string uri() {
  return fmt::format("{0}:(?:{1}|{2}|{3}+(?:/{3}*)*)?{4}", kScheme, authority_and_path(), absolute_path(), kPathCharacter,
                     query_and_fragment());
}

std::string uri_reference() {
  constexpr std::string_view kFirstCharacter = "(?:[A-Za-z0-9._~!$&'()*+,;=@-]|%[0-9A-Fa-f]{2})";  // no colon
  return fmt::format("(?:{}|(?:{}|{}|{}+(?:/{}*)*)?{})", uri(), authority_and_path(), absolute_path(), kFirstCharacter,
                     kPathCharacter, query_and_fragment());
}

std::string email() {
  constexpr std::string_view kAtom = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+";
  return fmt::format("{0}(?:\\.{0})*@{1}", kAtom, host_name());
}

std::string json_pointer() { return "(?:/(?:[^~/]|~[01])*)*"; }

std::string pattern_of(std::string_view name) {
  if (name == "date") return std::string(kDate);
  if (name == "time") return std::string(kTime);
  if (name == "date-time") return fmt::format("{}T{}", kDate, kTime);
  if (name == "duration") return fmt::format("P(?:{0}(?:{1})?|{1}|[0-9]+W)", kDurationDate, kDurationTime);
  if (name == "email" || name == "idn-email") return email();
  if (name == "hostname" || name == "idn-hostname") return host_name();
  if (name == "ipv4") return fmt::format("{0}\\.{0}\\.{0}\\.{0}", kByte);
  if (name == "ipv6") return ipv6();
  if (name == "uuid") return std::string(kUuid);
  if (name == "uri" || name == "iri") return uri();
  if (name == "uri-reference" || name == "iri-reference") return uri_reference();
  if (name == "uri-template") return fmt::format("(?:{}|\\{{[A-Za-z0-9_]+\\}})*", kPathCharacter);
  if (name == "json-pointer") return json_pointer();
  if (name == "relative-json-pointer") return fmt::format("(?:0|[1-9][0-9]*)(?:#|{})", json_pointer());
  if (name == "regex") return "[A-Za-z0-9 _-]*";
  return {};
}

// Whatever a validator may take for the format; the empty text: anything.
std::string_view wide_pattern_of(std::string_view name) {
  if (name == "date") return "\\d{4}-?(?:\\d{2}-?\\d{2}|W\\d{2}(?:-?\\d)?|\\d{3})";
  if (name == "time") return "[Tt]?\\d{1,2}(?::[\\s\\S]*|\\d{0,4}(?:[.,]\\d*)?(?:[Zz]|[+-][\\d:]*)?)";
  if (name == "date-time") return "[\\dWw-]{7,10}[Tt _][\\s\\S]*";
  if (name == "duration") return "[+-]?[Pp][\\s\\S]*";
  if (name == "email" || name == "idn-email") return "[\\s\\S]*@[\\s\\S]*";
  if (name == "hostname") return "[\\dA-Za-z._-]*";
  if (name == "ipv4") return "[\\dA-Fa-fXx.]*";
  if (name == "ipv6") return "[^:]*:[^:]*:[\\s\\S]*";
  if (name == "uuid") return "[\\dA-Fa-f{}urnURN:-]{32,}";
  if (name == "uri" || name == "iri") return "[^:]+:[\\s\\S]*";
  if (name == "json-pointer") return "(?:[/#][\\s\\S]*)?";
  if (name == "relative-json-pointer") return "[+-]?\\d[\\s\\S]*";
  return {};
}

}  // namespace

Result<std::optional<FormatTexts>> format_texts(TermStore& store, std::string_view name) {
  const std::string pattern = pattern_of(name);
  if (pattern.empty()) return std::nullopt;
  FormatTexts texts;
  KVASIR_TRY(texts.surely, pattern_language(store, pattern, PatternFit::kWhole));
  if (name == "hostname" || name == "idn-hostname") {
    const TermId any = store.char_class(text::regex::CodePointSet::of(0, kLastCodePoint));
    // A label like "xn--a" is an encoded name, which validators look into.
    KVASIR_TRY(const TermId encoded, pattern_language(store, "(?:^|\\.)..--", PatternFit::kFound));
    texts.surely = store.without(store.all_of({texts.surely, store.repeat(any, 1, 253)}), encoded);
  }
  const std::string_view wide = wide_pattern_of(name);
  texts.perhaps = store.any_text();
  if (wide.empty()) return texts;
  KVASIR_TRY(texts.perhaps, pattern_language(store, wide, PatternFit::kWhole, ClassReading::kWide));
  return texts;
}

}  // namespace kvasir::grammar
