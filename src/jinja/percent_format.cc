#include "jinja/percent_format.h"

#include <cmath>

#include "jinja/format_spec.h"
#include "jinja/text_form.h"
#include "jinja/traced_text.h"

namespace kvasir::jinja {
namespace {

// Hands out the values of a `%` formatting, by position or by name.
class ValueSource {
 public:
  ValueSource(Runtime& runtime, const Value& values) : runtime_(runtime), values_(values) {
    is_tuple_ = values.is_list() && values.as_list().kind == ListKind::kTuple;
  }

  Result<Value> next() {
    const std::size_t size = is_tuple_ ? values_.as_list().items.size() : 1;
    if (next_ >= size) return template_error("not enough arguments for format string");
    return is_tuple_ ? values_.as_list().items[next_++] : (++next_, values_);
  }

  Result<Value> named(std::string_view name) {
    if (!values_.is_dict()) return template_error("format requires a mapping");
    KVASIR_CHECKED(runtime_.charge(1));
    next_ = 1;
    const Value* value = values_.as_dict().find(name);
    if (value == nullptr) return template_error("format names the missing key '{}'", name);
    return *value;
  }

  Status expect_all_used() const {
    const bool unused =
        is_tuple_ ? next_ < values_.as_list().items.size() : (next_ == 0 && !values_.is_dict());
    if (unused) return template_error("not all arguments converted during string formatting");
    return {};
  }

 private:
  Runtime& runtime_;
  const Value& values_;
  bool is_tuple_ = false;
  std::size_t next_ = 0;
};

Result<std::string> format_number(Runtime& runtime, const Value& value, FormatSpec spec) {
  const bool whole = spec.type == 'd' || spec.type == 'x' || spec.type == 'X' || spec.type == 'o';
  if (value.is_undefined()) return template_error("{}", value.undefined_reason());
  if (!value.numeric()) {
    return template_error("%{} format: a number is required, not {}", spec.type, value.type_name());
  }
  if (!whole) return format_float(runtime, *value.numeric(), spec);
  if (const auto integer = value.integral()) return format_integer(runtime, *integer, spec);
  const double truncated = std::trunc(value.as_float());
  if (spec.type != 'd' || !(std::fabs(truncated) < 9.2e18)) {
    return template_error("%{} format: an integer is required, not {}", spec.type, value.type_name());
  }
  return format_integer(runtime, static_cast<std::int64_t>(truncated), spec);
}

Result<std::string> format_directive(Runtime& runtime, const Value& value, FormatSpec spec, char type) {
  switch (type) {
    case 's': {
      KVASIR_TRY(const std::string text, to_text(runtime, value));
      return format_text(runtime, text, spec);
    }
    case 'r':
    case 'a': {
      std::string text;
      KVASIR_CHECKED(append_repr(runtime, value, text));
      return format_text(runtime, text, spec);
    }
    case 'c':
      if (value.is_string() && value.text().num_code_points == 1)
        return format_text(runtime, value.as_string(), spec);
      if (!value.integral()) return template_error("%c needs a character or an integer");
      spec.type = 'c';
      return format_integer(runtime, *value.integral(), spec);
    case 'i':
    case 'u':
      spec.type = 'd';
      return format_number(runtime, value, spec);
    default:
      break;
  }
  constexpr std::string_view kNumberTypes = "doxXeEfFgG";
  if (kNumberTypes.find(type) == std::string_view::npos) {
    return template_error("unsupported format character '{}'", type);
  }
  spec.type = type;
  return format_number(runtime, value, spec);
}

// One directive behind its `%`.
class DirectiveReader {
 public:
  DirectiveReader(std::string_view& rest, ValueSource& source) : rest_(rest), source_(source) {}

  Result<std::string> read(Runtime& runtime) {
    std::optional<Value> value;
    if (rest_.starts_with('(')) {
      const std::size_t close = rest_.find(')');
      if (close == std::string_view::npos) return template_error("incomplete format key");
      KVASIR_TRY(value, source_.named(rest_.substr(1, close - 1)));
      rest_.remove_prefix(close + 1);
    }
    FormatSpec spec;
    spec.align = '>';
    read_flags(spec);
    KVASIR_TRY(spec.width, read_amount(spec));
    if (rest_.starts_with('.')) {
      rest_.remove_prefix(1);
      KVASIR_TRY(spec.precision, read_amount(spec));
    }
    while (!rest_.empty() && (rest_[0] == 'h' || rest_[0] == 'l' || rest_[0] == 'L')) rest_.remove_prefix(1);
    if (rest_.empty()) return template_error("incomplete format");
    const char type = rest_[0];
    rest_.remove_prefix(1);
    if (type == '%') return std::string("%");
    if (!value) {
      KVASIR_TRY(value, source_.next());
    }
    return format_directive(runtime, *value, without_zero_fill(spec, type), type);
  }

 private:
  void read_flags(FormatSpec& spec) {
    bool zero = false;
    for (; !rest_.empty(); rest_.remove_prefix(1)) {
      switch (rest_[0]) {
        case '-':
          spec.align = '<';
          continue;
        case '+':
          spec.sign = '+';
          continue;
        case ' ':
          spec.sign = spec.sign == '+' ? '+' : ' ';
          continue;
        case '#':
          spec.alternate = true;
          continue;
        case '0':
          zero = true;
          continue;
        default:
          break;
      }
      break;
    }
    if (zero && spec.align != '<') {
      spec.fill.assign(1, '0');
      spec.align = '=';
    }
  }

  // A width or precision: digits, or `*` for the next value (negative: left-aligned).
  Result<std::size_t> read_amount(FormatSpec& spec) {
    if (!rest_.starts_with('*')) return take_number(rest_);
    rest_.remove_prefix(1);
    KVASIR_TRY(const Value value, source_.next());
    if (!value.integral()) return template_error("* wants an integer");
    const std::int64_t amount = *value.integral();
    if (amount > 999'999'999 || amount < -999'999'999) return limit_error("a format width of {}", amount);
    if (amount < 0) spec.align = '<';
    return static_cast<std::size_t>(std::abs(amount));
  }

  static FormatSpec without_zero_fill(FormatSpec spec, char type) {
    if (spec.align == '=' && (type == 's' || type == 'r' || type == 'a' || type == 'c')) {
      spec.align = '>';
      spec.fill.assign(1, ' ');
    }
    return spec;
  }

  std::string_view& rest_;
  ValueSource& source_;
};

}  // namespace

Result<Value> percent_format(Runtime& runtime, const Value& format, const Value& values) {
  KVASIR_CHECKED(runtime.charge_bytes(format.as_string().size()));
  std::string_view rest = format.as_string();
  ValueSource source(runtime, values);
  const bool is_foreign = has_foreign(values);
  TracedText out;
  while (!rest.empty()) {
    const std::size_t percent = std::min(rest.find('%'), rest.size());
    out.append_part(format.text(), format.as_string().size() - rest.size(), percent);
    rest.remove_prefix(percent);
    if (rest.empty()) break;
    rest.remove_prefix(1);
    KVASIR_TRY(const std::string piece, DirectiveReader(rest, source).read(runtime));
    if (is_foreign) {
      out.append_foreign(piece);
    } else {
      out.append(piece);
    }
  }
  KVASIR_CHECKED(source.expect_all_used());
  return runtime.make_string(std::move(out));
}

}  // namespace kvasir::jinja
