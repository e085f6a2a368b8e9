// The functions every chat template can call.
#include <array>
#include <ctime>
#include <map>

#include "jinja/access.h"
#include "jinja/builtin.h"
#include "jinja/namespace.h"
#include "jinja/text_form.h"

namespace kvasir::jinja {
namespace {

// The sandbox's limit.
constexpr std::size_t kMaxRangeItems = 100'000;

Result<Value> range(Runtime& runtime, const Value&, const Arguments& arguments) {
  const std::size_t count = arguments.positional.size();
  if (count == 0 || count > 3 || !arguments.keywords.empty())
    return template_error("range takes 1 to 3 integers");
  std::array<std::int64_t, 3> bounds = {0, 0, 1};
  for (std::size_t i = 0; i < count; ++i) {
    if (arguments.positional[i].is_undefined())
      return template_error("{}", arguments.positional[i].undefined_reason());
    KVASIR_TRY(bounds[count == 1 ? 1 : i], int_argument(arguments.positional[i], "range", 0));
  }
  const std::int64_t start = bounds[0];
  const std::int64_t stop = bounds[1];
  const std::int64_t step = bounds[2];
  if (step == 0) return template_error("range: the step must not be zero");
  std::vector<Value> items;
  const auto more = [=](std::int64_t value) { return step > 0 ? value < stop : value > stop; };
  for (std::int64_t value = start; more(value);) {
    if (items.size() == kMaxRangeItems) return limit_error("a range of more than {} items", kMaxRangeItems);
    items.push_back(Value::integer(value));
    if (__builtin_add_overflow(value, step, &value)) break;
  }
  return runtime.make_list(std::move(items), ListKind::kRange);
}

// dict(mapping or pairs, key=value, ...)
Result<std::vector<Value::Entry>> dict_entries(Runtime& runtime, const Arguments& arguments) {
  if (arguments.positional.size() > 1) return template_error("dict takes at most one positional argument");
  std::vector<Value::Entry> entries;
  if (!arguments.positional.empty()) {
    const Value& source = arguments.positional[0];
    if (source.is_dict()) {
      entries = source.as_dict().entries();
    } else {
      KVASIR_TRY(const auto pairs, iterate(runtime, source));
      for (const Value& pair : pairs->items) {
        KVASIR_TRY(const auto items, iterate(runtime, pair));
        if (items->items.size() != 2)
          return template_error("dict needs pairs, got {} items", items->items.size());
        entries.emplace_back(items->items[0], items->items[1]);
      }
    }
  }
  KVASIR_CHECKED(runtime.charge(entries.size() + arguments.keywords.size()));
  for (const auto& [name, value] : arguments.keywords) entries.emplace_back(Value::string(name), value);
  return entries;
}

Result<Value> dict(Runtime& runtime, const Value&, const Arguments& arguments) {
  KVASIR_TRY(auto entries, dict_entries(runtime, arguments));
  return runtime.make_dict(std::move(entries));
}

Result<Value> make_namespace(Runtime& runtime, const Value&, const Arguments& arguments) {
  KVASIR_TRY(const auto entries, dict_entries(runtime, arguments));
  auto space = std::make_shared<Namespace>();
  for (const auto& [key, value] : entries) {
    KVASIR_TRY(const std::string name, string_argument(key, "attribute", ""));
    KVASIR_CHECKED(space->set(name, value));
  }
  return runtime.adopt(std::move(space));
}

Result<Value> raise_exception(Runtime& runtime, const Value&, const Arguments& arguments) {
  KVASIR_TRY(const std::string message, to_text(runtime, arguments.positional[0]));
  return template_error("{}", message);
}

// One conversion at a time, so that no width flag can make the C library write more than a little.
Result<Value> strftime_now(Runtime& runtime, const Value&, const Arguments& arguments) {
  constexpr std::string_view kConversions = "aAbBcCdDeFgGhHIjklmMnpPrRsStTuUVwWxXyYzZ%";
  KVASIR_TRY(const std::string format, string_argument(arguments.positional[0], "format", ""));
  KVASIR_CHECKED(runtime.charge(1 + format.size()));
  const std::tm now = runtime.options().now();
  std::string out;
  for (std::size_t i = 0; i < format.size(); ++i) {
    std::size_t end = i + 1;
    if (format[i] == '%' && end < format.size() &&
        (format[end] == '-' || format[end] == '_' || format[end] == '^'))
      ++end;
    if (format[i] != '%' || end >= format.size()) {
      out += format[i];
      continue;
    }
    if (format[end] == 'f') {
      out += "000000";  // the clock counts seconds
      i = end;
    } else if (kConversions.find(format[end]) == std::string_view::npos) {
      out += format[i];
    } else {
      std::array<char, 128> buffer;
      const std::size_t size =
          std::strftime(buffer.data(), buffer.size(), format.substr(i, end - i + 1).c_str(), &now);
      out.append(buffer.data(), size);
      i = end;
    }
  }
  return runtime.make_string(std::move(out));
}

// cycler(a, b, ...): next() gives each in turn.
class Cycler final : public Object {
 public:
  explicit Cycler(std::vector<Value> values) : values_(std::move(values)) {}
  std::string_view type_name() const override { return "Cycler"; }
  std::optional<Value> attribute(std::string_view name) override;
  void release() override { values_.clear(); }

  Value current() const { return values_[position_]; }
  Value next() {
    Value value = current();
    position_ = (position_ + 1) % values_.size();
    return value;
  }
  void reset() { position_ = 0; }

 private:
  std::vector<Value> values_;
  std::size_t position_ = 0;
};

Cycler& cycler_of(const Value& self) { return static_cast<Cycler&>(self.as_object()); }

constexpr Builtin kCyclerMethods[] = {
    {"next",
     0,
     {},
     [](Runtime&, const Value& self, const Arguments&) -> Result<Value> { return cycler_of(self).next(); }},
    {"reset",
     0,
     {},
     [](Runtime&, const Value& self, const Arguments&) -> Result<Value> {
       cycler_of(self).reset();
       return Value::none();
     }},
};

std::optional<Value> Cycler::attribute(std::string_view name) {
  if (name == "current") return current();
  if (const Builtin* method = find_builtin(kCyclerMethods, name)) {
    return Value::object(std::make_shared<BuiltinFunction>(*method, Value::object(shared_from_this())));
  }
  return std::nullopt;
}

Result<Value> make_cycler(Runtime& runtime, const Value&, const Arguments& arguments) {
  if (arguments.positional.empty()) return template_error("cycler needs at least one item");
  return runtime.adopt(std::make_shared<Cycler>(arguments.positional));
}

// joiner(separator): nothing on the first call, the separator on every later one.
class Joiner final : public Object {
 public:
  explicit Joiner(Value separator) : separator_(std::move(separator)) {}
  std::string_view type_name() const override { return "Joiner"; }
  bool callable() const override { return true; }
  Result<Value> call(Runtime& /*runtime*/, Arguments /*arguments*/) override {
    if (std::exchange(used_, true)) return separator_;
    return Value::string("");
  }
  void release() override { separator_ = Value(); }

 private:
  Value separator_;
  bool used_ = false;
};

Result<Value> make_joiner(Runtime& runtime, const Value&, const Arguments& arguments) {
  const Value& separator = arguments.positional[0];
  return runtime.adopt(std::make_shared<Joiner>(separator.is_missing() ? Value::string(", ") : separator));
}

constexpr Builtin kGlobals[] = {
    {"cycler", 0, {kAnyArguments}, make_cycler},
    {"dict", 0, {kAnyArguments}, dict},
    {"joiner", 0, {"sep"}, make_joiner},
    {"namespace", 0, {kAnyArguments}, make_namespace},
    {"raise_exception", 1, {"message"}, raise_exception},
    {"range", 0, {kAnyArguments}, range},
    {"strftime_now", 1, {"format"}, strftime_now},
};

}  // namespace

const Builtin* find_global(std::string_view name) { return find_builtin(kGlobals, name); }

}  // namespace kvasir::jinja
