#!/usr/bin/env python3
"""Writes tests/cases/tokenizer/splits_<family>.jsonl: how a regular-expression engine splits words.

Each line is {"text": ..., "words": [...]}. The patterns are those of the models' own tokenizer files, run
by the package `regex`; src/text/pretokenizer.cc does the same by hand. Characters newer than Unicode 15.1
must not appear here, since the package may know them.
"""
import json
import pathlib
import random
import re

import regex

ROOT = pathlib.Path(__file__).resolve().parent.parent
CASES = ROOT / "tests" / "cases" / "tokenizer"
PASSES = ROOT / "src" / "text" / "pattern_passes.cc"
SPACE = r"\p{White_Space}"
CONTRACTIONS = r"'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL])"
GPT2 = rf"'s|'t|'re|'ve|'m|'ll|'d| ?\p{{L}}+| ?\p{{N}}+| ?[^{SPACE}\p{{L}}\p{{N}}]+|{SPACE}+(?![^{SPACE}])|{SPACE}+"


def llama3(digits):
    return (rf"{CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{digits}| ?[^{SPACE}\p{{L}}\p{{N}}]+[\r\n]*|"
            rf"{SPACE}*[\r\n]+|{SPACE}+(?![^{SPACE}])|{SPACE}+")


# \w as Oniguruma has it, which runs the files' own patterns.
WORD = r"\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}²³¹¼-¾Ⓐ-ⓩ🄰-🅉🅐-🅩🅰-🆉"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
ENDS = rf"{SPACE}*[\r\n]+|{SPACE}+(?![^{SPACE}])|{SPACE}+"


def cased(contractions, digits):
    """The pattern of tekken and o200k: words end where a lower-case letter is followed by an upper-case one."""
    prefix = r"[^\r\n\p{L}\p{N}]?"
    return (rf"{prefix}{UPPER}*{LOWER}+{contractions}|{prefix}{UPPER}+{LOWER}*{contractions}|\p{{N}}{digits}|"
            rf" ?[^{SPACE}\p{{L}}\p{{N}}]+[\r\n/]*|{ENDS}")


# DeepSeek LLM's letters with case: the literal of src/text/pattern_passes.cc.
CASED_LETTERS = "".join(re.findall('"(.*)"', PASSES.read_text(encoding="utf-8").split("kCasedLetters =")[1].split(";")[0]))
MARKS = "!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~"
DEEPSEEK3 = (rf"[{MARKS}][A-Za-z]+|[^\r\n\p{{L}}\p{{P}}\p{{S}}]?[\p{{L}}\p{{M}}]+| ?[\p{{P}}\p{{S}}]+[\r\n]*|{ENDS}")
BLOOM = rf" ?[^({SPACE}|.,!?…。，、।۔،)]+"

# Set operations need the package's version 1.
UPPER_NO_HAN, LOWER_NO_HAN = (rf"[{kind}\p{{Lm}}\p{{Lo}}\p{{M}}&&[^\p{{Han}}]]" for kind in (r"\p{Lu}\p{Lt}", r"\p{Ll}"))
KIMI = (r"(?V1)[\p{Han}]+|" + cased(f"(?:{CONTRACTIONS})?", "{1,3}").replace(UPPER, UPPER_NO_HAN)
        .replace(LOWER, LOWER_NO_HAN).replace(r"[\r\n/]*", r"[\r\n]*"))

# Several patterns are passes: each splits the pieces that the one before left, matches and gaps alike.
FAMILIES = {
    "gpt2": [GPT2],
    "smollm": [r"\p{N}", GPT2],
    "llama3": [llama3("{1,3}")],
    "qwen2": [llama3("")],
    "qwen35": [rf"{CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}| ?[^{SPACE}\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{ENDS}"],
    "tekken": [cased("", "")],
    "gpt4o": [cased(f"(?:{CONTRACTIONS})?", "{1,3}")],
    "seed_coder": [llama3("").replace(r"]+[\r\n]*|", r"\r\n]+|")],
    "ufakzeka": [llama3("")[len(CONTRACTIONS) + 1:]],
    "minicpm5": [r"\p{N}{1,3}", llama3("+")],
    "laguna": [r"[^\n]+|[\n]+", llama3("")],
    "deepseek_llm": [r"[\r\n]", rf"{SPACE}?[{CASED_LETTERS}]+", rf"{SPACE}?[!-/:-~！-／：-～‘-‟　-。]+", rf"{SPACE}+\Z",
                     "[一-龥ࠀ-一가-퟿]+", r"\p{N}+"],
    "deepseek_coder": [r"[\r\n]", rf"{SPACE}?\p{{L}}+", rf"{SPACE}?\p{{P}}+", "[一-龥ࠀ-一가-퟿]+", r"\p{N}"],
    "deepseek_v3": [r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+", DEEPSEEK3],
    "falcon": [r"[\p{P}\$\+<=>\^~\|`]+", GPT2, "[0-9][0-9][0-9]"],
    "bloom": [BLOOM],
    "viking": [BLOOM, r"\p{N}"],
    "kimi_k2": [KIMI],
    "spark2_5": [r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+",
                 rf"[{MARKS}][A-Za-z]+|[^\r\n\p{{L}}\p{{P}}\p{{S}}]?[\p{{L}}\p{{M}}]+| ?[\p{{P}}\p{{S}}]+|[\r\n]|"
                 rf"{SPACE}+(?![^{SPACE}])|{SPACE}+", r"\p{N}"],
    "youtu": ["[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+", cased(f"(?:{CONTRACTIONS})?", "")],
    "tiny_aya": [rf"\d{{1,3}}(?=(?:\d{{3}})*(?![{WORD}]))", cased(f"(?:{CONTRACTIONS})?", "{1,3}")],
    "exaone_moe": [rf"{CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?(?:\p{{L}}\p{{M}}*(?: \p{{L}}\p{{M}}*)*)+|\p{{N}}|"
                   rf" ?[^{SPACE}\p{{L}}\p{{N}}]+[\r\n/]?|{SPACE}*[\r\n]|{SPACE}+(?![^{SPACE}])|{SPACE}+"],
    "jais2": [llama3("{1,3}").removesuffix(rf"{SPACE}+(?![^{SPACE}])|{SPACE}+") +
              "".join(rf"{SPACE}{{{n}}}(?![^{SPACE}])|" for n in ["512", "256", "128", "64", "32", "16", "8", "4", "1,2"]) +
              SPACE],
    "afmoe": [r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))",
              "[一-鿿㐀-䶿豈-\ufaff぀-ゟ゠-ヿ･-ﾟ⼀-\u2fdfเ-\u0e7f\u0e80-\u0effក-\u17ffက-႟ꩠ-ꩿꧠ-\ua9ff가-\ud7afᄀ-ᇿ]+", DEEPSEEK3],
    "chameleon": [r"[\t\n]|    |  ", r"\p{N}", r"[\p{P}!-/:-@\[-`{-~]", GPT2],
    "superbpe": [r"\p{N}+", r"(?=(\d{3})+(?!\d))"],
    "default": [r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", r"[0-9][0-9][0-9]"],
}

TEXTS = [
    "", " ", "  ", "a", " a", "  a", "a ", "a  ", "Hello, world!", "Hello  world   again", " leading and trailing  ",
    "it's we're I've you'll I'm he'd don't", "IT'S WE'RE I'VE YOU'LL I'M HE'D DON'T", "'s 'S ''s '' ' 'x 'r 'v 'l'l",
    "o'clock rock'n'roll '90s 'tis", "it’s don’t", "tabs\tand\t\tmore\t", "line\nbreaks\n\nand\r\nwindows\r\n\r\n",
    " \n \n  x", "\n\n\n  y  \n\n", "x \n y\n  z", "!\n!!\n\n!!!\r\n.\n", " . , ;  : '\n", "\t \n\t\r\n ",
    "1 22 333 4444 55555 666666 7777777", "3.14159 2,718 1e-10 0xFF", "12ab34cd", " 7", "  7", "a1 b 2", "1²345 12½34 ³12",
    "٠١٢٣ ०१२ Ⅷ ½ ① 123४५६7", "a+b=c x<y>z $5 50% #1 `q` ~w ^v |u _t_", "-- ... !!! ??? === $$$ +++", "end.'s (x)'ll",
    "你好，世界！中文 分词", "日本語のテキスト、カタカナ。", "안녕하세요 세계", "नमस्ते दुनिया क्षत्रिय", "สวัสดีชาวโลก", "مرحبا بالعالَم؟",
    "שלום עולם", "Привет, мир!", "Γειά σου Κόσμε", "e\u0301 a\u0301\u0302b \u0301", "😀😃 text😀text 👩🏽‍💻🏳️‍🌈 🇺🇸🇬🇧 1️⃣",
    "a\u00a0b\u00a0\u00a0c\u2003d\u3000\u3000e\u2028f\u0085g\u200bh\ufeffi", "\u0000\u0001 \u007f\u001b[0m",
    "camelCase HTTPServer XMLHttpRequestX naïve ÉCOLE Ǆungla ǅ ʰʷ ªº a/b//c\n/d", "日A日B日c 한A국 e\u0301A\u0301 \u0301AB \u0301\u03011",
    "if (x >= 10) {\n\treturn a[i]->b;  // c\n}\n", "def f(x):\n    return f\"{x!r}\\n\"\n", "<|im_start|>user\nhi<|im_end|>",
]
# For the families that have patterns of their own for them.
LATER_FAMILIES = ("kimi_k2", "spark2_5", "youtu", "tiny_aya", "exaone_moe", "jais2", "superbpe", "afmoe", "chameleon")
LATER_TEXTS = [
    "1234567 123456 12345 1234 123 12", "1,234,567.89", "x1234 1234x 1234_5 1234é", "٣٤٥٦٧ 12²3456 ²123", "价格1234元 日本1234人",
    "中文和English混排 a中B文c HTTPServer中Fine don'T中's", "々〇中⺀x ⺀ 、。〿︰﹏", "ㄅㄆㄇ注音 …“引号”——", "カタカナひらがな 東京タワー Tower",
    "한국어 텍스트 ㄱㄴ123", "hello world again  twice", "a's b'LL c", "e\u0301 a\u0301 b\u0301c d\u0301's", "x\n\n\ny \n\n\n \n z",
    "a/\n!?\r\n!\n\nx//\n/y", "   x", "     ", "       x", "         ", "x" + " " * 600 + "y", " " * 1030, "\t\t\ta " + "\t" * 9,
]
PARTS = ["a", "B", "é", "中", "क", "\u093f", "\u0301", "1", "22", "½", "४", "'", "'s", "'LL", " ", "  ", "\n", "\r\n", "\t", "\u00a0",
         "\u3000", "!", "$", "_", "。", "😀", "<", "`", "-"]


def split(text, patterns):
    pieces = [text] if text else []
    for pattern in patterns:
        pieces = [part for piece in pieces for part in matches_and_gaps(piece, pattern)]
    return pieces


def matches_and_gaps(piece, pattern):
    position = 0
    for match in regex.finditer(pattern, piece):
        if match.start() > position:
            yield piece[position:match.start()]
        if match.end() > match.start():
            yield match.group()
        position = match.end()
    if position < len(piece):
        yield piece[position:]


def main():
    draw = random.Random(1)
    texts = TEXTS + ["".join(draw.choices(PARTS, k=draw.randint(2, 16))) for _ in range(150)]
    for family, patterns in FAMILIES.items():
        those = texts + (LATER_TEXTS if family in LATER_FAMILIES else [])
        lines = [json.dumps({"text": t, "words": split(t, patterns)}, ensure_ascii=False) for t in those]
        (CASES / f"splits_{family}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        print(f"splits_{family}.jsonl: {len(lines)} texts")


if __name__ == "__main__":
    main()
