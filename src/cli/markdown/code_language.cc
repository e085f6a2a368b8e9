#include "cli/markdown/code_language.h"

#include <algorithm>
#include <cctype>
#include <string>

namespace kvasir::cli {
namespace {

using Names = std::string_view;

constexpr Names kSlashes[] = {"//"};
constexpr Names kHash[] = {"#"};
constexpr Names kDashes[] = {"--"};
constexpr Delimiters kSlashStar[] = {{"/*", "*/"}};
constexpr Delimiters kMarkup[] = {{"<!--", "-->"}};
constexpr Delimiters kTripleQuotes[] = {{"\"\"\"", "\"\"\""}, {"'''", "'''"}};
constexpr Delimiters kBackticks[] = {{"`", "`"}};

constexpr Names kCNames[] = {"c",   "h",    "cpp",     "c++",  "cc",         "cxx",
                             "hpp", "cuda", "arduino", "objc", "objective-c"};
constexpr Names kCWords[] = {
    "alignas",   "alignof",  "auto",      "bool",     "break",   "case",      "catch",         "char",
    "class",     "co_await", "co_return", "co_yield", "concept", "const",     "consteval",     "constexpr",
    "constinit", "continue", "decltype",  "default",  "delete",  "do",        "double",        "else",
    "enum",      "explicit", "extern",    "false",    "final",   "float",     "for",           "friend",
    "goto",      "if",       "inline",    "int",      "long",    "mutable",   "namespace",     "new",
    "noexcept",  "nullptr",  "operator",  "override", "private", "protected", "public",        "register",
    "requires",  "return",   "short",     "signed",   "sizeof",  "static",    "static_assert", "struct",
    "switch",    "template", "this",      "throw",    "true",    "try",       "typedef",       "typename",
    "union",     "unsigned", "using",     "virtual",  "void",    "volatile",  "while"};

constexpr Names kJavaNames[] = {"java", "kotlin", "kt",    "scala", "csharp",
                                "cs",   "c#",     "swift", "dart",  "php"};
constexpr Names kJavaWords[] = {
    "abstract",  "as",       "async",      "await",   "boolean",  "break",     "byte",       "case",
    "catch",     "char",     "class",      "const",   "continue", "data",      "default",    "defer",
    "do",        "double",   "echo",       "else",    "enum",     "extends",   "extension",  "false",
    "final",     "finally",  "float",      "for",     "foreach",  "fun",       "func",       "function",
    "guard",     "if",       "implements", "import",  "in",       "init",      "instanceof", "int",
    "interface", "internal", "is",         "let",     "long",     "namespace", "new",        "nil",
    "null",      "object",   "override",   "package", "private",  "protected", "protocol",   "public",
    "return",    "sealed",   "self",       "short",   "static",   "string",    "struct",     "super",
    "switch",    "this",     "throw",      "throws",  "true",     "try",       "using",      "val",
    "var",       "void",     "when",       "where",   "while",    "yield"};

constexpr Names kScriptNames[] = {"javascript", "js", "jsx", "mjs", "typescript", "ts", "tsx"};
constexpr Names kScriptWords[] = {
    "any",        "as",      "async",    "await",      "boolean",   "break",  "case",     "catch",
    "class",      "const",   "continue", "default",    "delete",    "do",     "else",     "enum",
    "export",     "extends", "false",    "finally",    "for",       "from",   "function", "if",
    "implements", "import",  "in",       "instanceof", "interface", "let",    "new",      "null",
    "number",     "of",      "private",  "public",     "readonly",  "return", "static",   "string",
    "super",      "switch",  "this",     "throw",      "true",      "try",    "type",     "typeof",
    "undefined",  "var",     "void",     "while",      "yield"};

constexpr Names kGoNames[] = {"go", "golang"};
constexpr Names kGoWords[] = {
    "any",    "bool",   "break",       "byte",   "case",    "chan", "const",   "continue", "default", "defer",
    "else",   "error",  "fallthrough", "false",  "float64", "for",  "func",    "go",       "goto",    "if",
    "import", "int",    "interface",   "iota",   "map",     "nil",  "package", "range",    "return",  "rune",
    "select", "string", "struct",      "switch", "true",    "type", "var"};

constexpr Names kRustNames[] = {"rust", "rs"};
constexpr Names kRustWords[] = {
    "Self", "as",   "async",  "await",  "bool",   "break", "char",   "const", "continue", "crate",
    "dyn",  "else", "enum",   "extern", "f32",    "f64",   "false",  "fn",    "for",      "i32",
    "i64",  "if",   "impl",   "in",     "let",    "loop",  "match",  "mod",   "move",     "mut",
    "pub",  "ref",  "return", "self",   "static", "str",   "struct", "super", "trait",    "true",
    "type", "u32",  "u64",    "u8",     "unsafe", "use",   "usize",  "where", "while"};

constexpr Names kPythonNames[] = {"python", "py", "python3", "pycon"};
constexpr Names kPythonWords[] = {
    "False",  "None",     "True",   "and",  "as",   "assert", "async",  "await",    "break", "case",
    "class",  "continue", "def",    "del",  "elif", "else",   "except", "finally",  "for",   "from",
    "global", "if",       "import", "in",   "is",   "lambda", "match",  "nonlocal", "not",   "or",
    "pass",   "raise",    "return", "self", "try",  "while",  "with",   "yield"};

constexpr Names kRubyNames[] = {"ruby", "rb", "elixir", "perl", "pl", "r", "julia", "jl"};
constexpr Names kRubyWords[] = {
    "and",    "begin",  "break", "case",     "class",   "def",    "do",     "else", "elsif", "end",
    "ensure", "false",  "for",   "function", "if",      "in",     "module", "my",   "next",  "nil",
    "not",    "or",     "print", "puts",     "require", "rescue", "return", "self", "sub",   "then",
    "true",   "unless", "until", "use",      "when",    "while",  "yield"};

constexpr Names kShellNames[] = {"sh",         "bash",   "zsh",  "shell",    "console", "fish",
                                 "dockerfile", "docker", "make", "makefile", "cmake"};
constexpr Names kShellWords[] = {"COPY",   "ENV",  "FROM", "RUN",      "case",  "cd",   "do",
                                 "done",   "echo", "elif", "else",     "endif", "esac", "exit",
                                 "export", "fi",   "for",  "function", "if",    "in",   "local",
                                 "return", "set",  "sudo", "then",     "until", "while"};

constexpr Names kDataNames[] = {"json", "jsonc", "yaml", "yml", "toml", "ini", "conf"};
constexpr Names kDataWords[] = {"false", "no", "null", "off", "on", "true", "yes"};

constexpr Names kSqlNames[] = {"sql", "mysql", "postgresql", "sqlite", "plsql"};
constexpr Names kSqlWords[] = {
    "alter",      "and",     "as",      "asc",     "begin", "between",  "by",    "case",  "commit",
    "count",      "create",  "default", "delete",  "desc",  "distinct", "drop",  "else",  "end",
    "exists",     "foreign", "from",    "full",    "group", "having",   "if",    "in",    "index",
    "inner",      "insert",  "int",     "integer", "into",  "is",       "join",  "key",   "left",
    "like",       "limit",   "not",     "null",    "on",    "or",       "order", "outer", "primary",
    "references", "right",   "select",  "set",     "sum",   "table",    "text",  "then",  "union",
    "unique",     "update",  "values",  "varchar", "view",  "when",     "where", "with"};

constexpr Names kMarkupNames[] = {"html", "xml", "svg", "vue"};
constexpr Names kStyleNames[] = {"css", "scss", "less"};
constexpr Names kDiffNames[] = {"diff", "patch"};

constexpr CodeLanguage kLanguages[] = {
    {.names = kCNames,
     .line_comments = kSlashes,
     .block_comments = kSlashStar,
     .block_strings = {},
     .quotes = "\"'",
     .words = kCWords},
    {.names = kJavaNames,
     .line_comments = kSlashes,
     .block_comments = kSlashStar,
     .block_strings = kTripleQuotes,
     .quotes = "\"'",
     .words = kJavaWords},
    {.names = kScriptNames,
     .line_comments = kSlashes,
     .block_comments = kSlashStar,
     .block_strings = kBackticks,
     .quotes = "\"'",
     .words = kScriptWords},
    {.names = kGoNames,
     .line_comments = kSlashes,
     .block_comments = kSlashStar,
     .block_strings = kBackticks,
     .quotes = "\"'",
     .words = kGoWords},
    {.names = kRustNames,
     .line_comments = kSlashes,
     .block_comments = kSlashStar,
     .block_strings = {},
     .quotes = "\"",
     .words = kRustWords},  // ' begins a lifetime too
    {.names = kPythonNames,
     .line_comments = kHash,
     .block_comments = {},
     .block_strings = kTripleQuotes,
     .quotes = "\"'",
     .words = kPythonWords},
    {.names = kRubyNames,
     .line_comments = kHash,
     .block_comments = {},
     .block_strings = {},
     .quotes = "\"'",
     .words = kRubyWords},
    {.names = kShellNames,
     .line_comments = kHash,
     .block_comments = {},
     .block_strings = {},
     .quotes = "\"'",
     .words = kShellWords},
    {.names = kDataNames,
     .line_comments = kHash,
     .block_comments = {},
     .block_strings = {},
     .quotes = "\"'",
     .words = kDataWords},
    {.names = kSqlNames,
     .line_comments = kDashes,
     .block_comments = kSlashStar,
     .block_strings = {},
     .quotes = "\"'",
     .words = kSqlWords,
     .ignores_case = true},
    {.names = kMarkupNames,
     .line_comments = {},
     .block_comments = kMarkup,
     .block_strings = {},
     .quotes = "\"",
     .words = {}},
    {.names = kStyleNames,
     .line_comments = {},
     .block_comments = kSlashStar,
     .block_strings = {},
     .quotes = "\"'",
     .words = {}},
    {.names = kDiffNames,
     .line_comments = {},
     .block_comments = {},
     .block_strings = {},
     .quotes = {},
     .words = {},
     .is_diff = true},
};

constexpr bool words_are_sorted() {
  return std::ranges::all_of(kLanguages,
                             [](const CodeLanguage& l) { return std::ranges::is_sorted(l.words); });
}
static_assert(words_are_sorted());

}  // namespace

const CodeLanguage* find_code_language(std::string_view name) {
  std::string lower(name);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const auto found = std::ranges::find_if(kLanguages, [&lower](const CodeLanguage& language) {
    return std::ranges::find(language.names, lower) != language.names.end();
  });
  return found == std::end(kLanguages) ? nullptr : &*found;
}

}  // namespace kvasir::cli
