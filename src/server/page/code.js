// Colours for code: spans with a class each, made of text alone. One pass, each character looked at a bounded number of
// times: what is opened and never closed reaches to its line's or the text's end.

const kMostColoured = 100_000;  // characters; longer code has one colour
const kHash = new Set(["python", "py", "bash", "sh", "shell", "console", "ruby", "rb", "yaml", "yml", "toml", "r", "perl",
                       "cmake", "dockerfile", "makefile", "nim"]);
const kSlash = new Set(["js", "javascript", "ts", "typescript", "jsx", "tsx", "c", "cpp", "c++", "cc", "h", "hpp", "cuda", "java",
                        "go", "rust", "rs", "swift", "kotlin", "cs", "csharp", "php", "scala", "dart", "zig", "css", "proto",
                        "json", "jsonc"]);
const kDash = new Set(["sql", "lua", "haskell", "hs"]);
const kWords = new Set(("and as assert async await break case catch class const constexpr continue def default defer del do done elif " +
  "else end enum esac except export extends extern false False fi finally fn for from func function go if impl import in " +
  "include inline interface is lambda let local loop match mod module mut namespace new nil None not null nullptr operator or " +
  "override package pass private protected pub public raise range return select self sizeof static struct super switch " +
  "template then this throw trait true True try type typedef typename typeof undefined union unsafe until use using var " +
  "virtual void where while with yield int float double bool char string str auto long short unsigned " +
  "SELECT FROM WHERE INSERT UPDATE DELETE INTO VALUES SET JOIN LEFT ON GROUP BY ORDER LIMIT AND OR NOT NULL CREATE TABLE AS")
  .split(" "));

function commentPattern(language) {
  if (kHash.has(language)) return "#[^\\n]*";
  if (kSlash.has(language)) return "//[^\\n]*|/\\*(?:[^*]|\\*(?!/))*(?:\\*/)?";
  return kDash.has(language) ? "--[^\\n]*" : "";
}

const kToken = "(\"(?:[^\"\\\\\\n]|\\\\.)*\"?|'(?:[^'\\\\\\n]|\\\\.)*'?|`(?:[^`\\\\]|\\\\[^])*`?)" +
               "|\\b(\\d[\\w.]*)|([A-Za-z_$][\\w$]*)";

// The code as text and spans; without a known language as it is.
function colouredCode(text, language) {
  const comment = commentPattern(language.toLowerCase());
  if (!comment || text.length > kMostColoured) return [text];
  const parts = [];
  let plain = 0;
  for (const found of text.matchAll(new RegExp(`(${comment})|${kToken}`, "g"))) {
    const [all, note, quoted, number, word] = found;
    const kind = note ? "note" : quoted ? "quoted" : number ? "number" : kWords.has(word) ? "word" : "";
    if (!kind) continue;
    parts.push(text.slice(plain, found.index), element("span", {className: kind, textContent: all}));
    plain = found.index + all.length;
  }
  parts.push(text.slice(plain));
  return parts;
}
