#!/usr/bin/env python3
"""Writes tests/cases/tokenizer_json/: tiny tokenizers, and the ids and decoded text that the library `tokenizers` gives.

NAME.json is a tokenizer.json; each line of NAME.jsonl is {"text", "ids", "decoded"}. Needs the package tokenizers.

    scripts/make_tokenizer_json_cases.py                                 the checked-in cases
    scripts/make_tokenizer_json_cases.py --full FOLDER TEXT_FILE...      every combination, over whole texts
    scripts/make_tokenizer_json_cases.py --of FOLDER tokenizer.json TEXT_FILE...   one tokenizer, over whole texts

The test TokenizerJson reads the folder KVASIR_TOKENIZER_CASES instead of the checked-in one where that is set.
"""
import argparse
import json
import pathlib
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

ROOT = pathlib.Path(__file__).resolve().parent.parent
CASES = ROOT / "tests" / "cases" / "tokenizer_json"
STRESS = ROOT / "tests" / "cases" / "tokenizer" / "stress.txt"

TEXTS = [
    "", " ", "a", "  a  b ", "Hello, world! It's  2024; don't", "IT'S WE'LL 'ſ it'ſ", "naïve Café cafe\u0301 ÉCOLE Ǆ ǅ İstanbul ΣΑΣ ß",
    "नमस्ते दुनिया क्षत्रिय १२३", "สวัสดีชาวโลก กำลัง", "안녕하세요 세계 한글", "日本語のテキスト、カタカナ。中文 ｶﾞ ﾊﾟ", "👩🏽‍💻🏳️‍🌈 🇺🇸🇬🇧🇺 1️⃣ 😀",
    "a\u0301\u0302b \u0301 \u200d\u200b\ufeff\u00ad x", "ﬁ ² ½ Ⅷ ① Å ㍿ ﷺ", "tabs\tand\r\n\r\nbreaks\n\n\n  x\u2028y\u0085z\u00a0w\u3000v",
    "camelCase HTTPServer x2y 12345678 3.14 1,234", "a<s>x</s> <tok>a b <tok>", "[MASK] a [MASK]b x[MASK]", "é\u0327 \u1e9b\u0323 \u0344 क़ \u2126",
    "مرحبا بالعالَم שלום", "a.b?c!d (e) [f] {g} | h, “i” … —", "▁a▁▁b ▁", "\u0000\u0001\u007f\u001b[0m", "i̇ İ I ı ŉ ᾳ ﬀ", "x" * 120 + " y" * 30,
    "ab abc abcd bcd <a><ab><b>", " do not , can 't . it 's ! I 'm ; they 've ; we 're ' q '", "ᄀ 가 각 각 ㄱ", "\U0001d165\U0001d16e \ud7a3\u0323",
    "ქართ Հայ አማር ꦗꦮ 𞤀𞤣 ߒߞߏ \u0378\u200dᏣᎳ 👨\u200d👩",
]
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
          r"\s+(?!\S)|\s+")
PREFIX, UPPER, LOWER = r"[^\r\n\p{L}\p{N}]?", r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
ENDS = r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
SHORT = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
PATTERNS = {
    "gpt2": GPT2, "llama3": LLAMA3, "qwen2": LLAMA3.replace("{1,3}", ""),
    "qwen35": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "gpt4o": f"{PREFIX}{UPPER}*{LOWER}+{SHORT}|{PREFIX}{UPPER}+{LOWER}*{SHORT}|{ENDS}",
    "tekken": f"{PREFIX}{UPPER}*{LOWER}+|{PREFIX}{UPPER}+{LOWER}*|{ENDS}".replace("{1,3}", ""),
    "kimi": r"[\p{Han}]+|" + f"{PREFIX}{UPPER[:-1]}&&[^\\p{{Han}}]]*{LOWER[:-1]}&&[^\\p{{Han}}]]+{SHORT}|{ENDS}".replace("/", ""),
    "cl100k": (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|"
               r"\s+(?!\S)|\s"),
    "deepseek3": (r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|"
                  r"\s*[\r\n]+|\s+(?!\S)|\s+"),
    "bloom": r" ?[^(\s|[.,!?…。，、।۔،])]+", "clip": r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+",
    "words": r"\w+|\W", "lazy": r"\w+?|\s{2,}?|[^\w\s]", "digits": r"\d{1,3}(?=(?:\d{3})*\b)", "classes": r"(?i:[a-f]+)|\p{Lu}\p{Ll}*|[\p{P}&&[^.]]",
}


def byte_level_split(pattern, behavior="isolated", invert=False):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), behavior, invert),
                                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


SPECIAL = ["<unk>", "<s>", "</s>", "[MASK]"]


def without_special(text):
    """A piece must not have the text of a special token."""
    for token in SPECIAL:
        text = text.replace(token, " ")
    return text


def byte_bpe(pre_tokenizer, normalizer=None, **options):
    tokenizer = Tokenizer(models.BPE(**options))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizer, decoders.ByteLevel()
    if normalizer:
        tokenizer.normalizer = normalizer
    return tokenizer, lambda size: trainers.BpeTrainer(vocab_size=size, special_tokens=SPECIAL, show_progress=False,
                                                       initial_alphabet=pre_tokenizers.ByteLevel.alphabet())


def character_bpe(normalizer, pre_tokenizer, decoder, alphabet=None, **options):
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", **options))
    tokenizer.normalizer, tokenizer.decoder = normalizer, decoder
    if pre_tokenizer:
        tokenizer.pre_tokenizer = pre_tokenizer
    more = {key: options[key] for key in ("end_of_word_suffix", "continuing_subword_prefix") if key in options}
    bytes_ = [f"<0x{byte:02X}>" for byte in range(256)] if options.get("byte_fallback") else []
    return tokenizer, lambda size: trainers.BpeTrainer(vocab_size=size, special_tokens=SPECIAL + bytes_, show_progress=False,
                                                       limit_alphabet=alphabet or 200, **more)


def unigram(normalizer, pre_tokenizer, decoder):
    tokenizer = Tokenizer(models.Unigram())
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizer, decoder
    return tokenizer, lambda size: trainers.UnigramTrainer(vocab_size=max(size, 1500), special_tokens=SPECIAL, unk_token="<unk>",
                                                           show_progress=False)


def wordpiece(normalizer, pre_tokenizer, cleanup=True):
    tokenizer = Tokenizer(models.WordPiece(unk_token="<unk>"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, pre_tokenizer
    tokenizer.decoder = decoders.WordPiece(cleanup=cleanup)
    return tokenizer, lambda size: trainers.WordPieceTrainer(vocab_size=size, special_tokens=SPECIAL, show_progress=False,
                                                             limit_alphabet=300)


def word_level(pre_tokenizer):
    tokenizer = Tokenizer(models.WordLevel(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizer
    return tokenizer, lambda size: trainers.WordLevelTrainer(vocab_size=size, special_tokens=SPECIAL, show_progress=False)


LLAMA2_DECODER = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
GEMMA_DECODER = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
NORMALIZERS = {
    "nfc": normalizers.NFC(), "nfd": normalizers.NFD(), "nfkc": normalizers.NFKC(), "nfkd": normalizers.NFKD(),
    "lower": normalizers.Lowercase(), "accents": normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents()]),
    "strip": normalizers.Strip(), "lstrip": normalizers.Strip(left=True, right=False), "nmt": normalizers.Nmt(),
    "replace": normalizers.Sequence([normalizers.Replace(Regex(" {2,}"), " "), normalizers.Replace("a", "bb"), normalizers.Prepend("▁")]),
    "bert": normalizers.BertNormalizer(), "bert_cased": normalizers.BertNormalizer(lowercase=False),
    "bert_accents": normalizers.BertNormalizer(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=True),
}
METASPACES = {scheme: pre_tokenizers.Metaspace(prepend_scheme=scheme) for scheme in ("always", "first", "never")}
PRE_TOKENIZERS = {
    "whitespace": pre_tokenizers.Whitespace(), "whitespace_split": pre_tokenizers.WhitespaceSplit(),
    "digits": pre_tokenizers.Digits(), "digits_alone": pre_tokenizers.Digits(individual_digits=True),
    "bert": pre_tokenizers.BertPreTokenizer(), "delimiter": pre_tokenizers.CharDelimiterSplit("a"),
    "scripts": pre_tokenizers.UnicodeScripts(), "fixed": pre_tokenizers.FixedLength(3),
    "falcon": pre_tokenizers.Sequence([pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.ByteLevel(add_prefix_space=False),
                                       pre_tokenizers.Digits(), pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), "isolated")]),
    **{f"punctuation_{b}": pre_tokenizers.Punctuation(b) for b in ("isolated", "removed", "merged_with_previous", "merged_with_next", "contiguous")},
    **{f"split_{b}{'_invert' if i else ''}": pre_tokenizers.Split(Regex(r"[aeiou ]"), b, i) for i in (False, True)
       for b in ("isolated", "removed", "merged_with_previous", "merged_with_next", "contiguous")},
}


def grid():
    """name -> (tokenizer, trainer of a size), and whether its cases are checked in."""
    for name, pattern in PATTERNS.items():
        yield f"bytes_{name}", byte_bpe(byte_level_split(pattern)), name in ("kimi", "cl100k", "bloom", "lazy", "llama3")
    yield "bytes_removed", byte_bpe(byte_level_split(GPT2, "removed", True)), False
    yield "bytes_prefix", byte_bpe(pre_tokenizers.ByteLevel(add_prefix_space=True)), True
    yield "bytes_whole", byte_bpe(pre_tokenizers.ByteLevel(add_prefix_space=False), ignore_merges=True), False
    for name, normalizer in NORMALIZERS.items():
        yield f"bytes_{name}", byte_bpe(pre_tokenizers.ByteLevel(add_prefix_space=False), normalizer), name in ("nfkc", "nmt")
        yield f"pieces_{name}", wordpiece(normalizer, pre_tokenizers.BertPreTokenizer()), name == "bert"
        yield f"unigram_{name}", unigram(normalizer, METASPACES["always"], decoders.Metaspace()), name == "nfkd"
    for name, pre_tokenizer in PRE_TOKENIZERS.items():
        yield f"pieces_{name}", wordpiece(normalizers.NFC(), pre_tokenizer, cleanup=False), False
        yield f"levels_{name}", word_level(pre_tokenizer), name in ("whitespace", "scripts", "split_merged_with_next_invert")
        yield f"unigram_{name}", unigram(None, pre_tokenizer, decoders.Metaspace()), False
    for name, metaspace in METASPACES.items():
        yield f"unigram_{name}", unigram(None, metaspace, decoders.Metaspace(prepend_scheme=name)), name == "first"
        yield f"unigram_split_{name}", unigram(None, pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), metaspace]),
                                               decoders.Metaspace(prepend_scheme=name)), False
    llama2 = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    yield "fallback_llama2", character_bpe(llama2, None, LLAMA2_DECODER, byte_fallback=True, fuse_unk=True), True
    gemma = pre_tokenizers.Split(" ", "merged_with_previous")
    yield "fallback_gemma", character_bpe(normalizers.Replace(" ", "▁"), gemma, GEMMA_DECODER, byte_fallback=True, fuse_unk=True), True
    for fuse in (False, True):
        yield f"unknown_{fuse}", character_bpe(normalizers.NFC(), pre_tokenizers.WhitespaceSplit(), decoders.Fuse(), 60, fuse_unk=fuse), fuse
    yield "suffix", character_bpe(normalizers.Lowercase(), pre_tokenizers.Whitespace(), decoders.WordPiece(prefix="##", cleanup=False),
                                  end_of_word_suffix="</w>"), True
    yield "prefix", character_bpe(normalizers.Lowercase(), pre_tokenizers.BertPreTokenizer(), decoders.WordPiece(),
                                  continuing_subword_prefix="##"), True


def add_tokens(tokenizer, number):
    """Tokens of every kind, and one of several frames."""
    tokenizer.add_special_tokens([AddedToken("[MASK]", lstrip=True, special=True)])
    tokenizer.add_tokens([AddedToken("<tok>", normalized=False, rstrip=True), AddedToken("abc", normalized=True),
                          AddedToken("bcd", normalized=False), AddedToken("Ǆ", single_word=True, normalized=True),
                          AddedToken("<a>", normalized=False), AddedToken("<a><ab>", normalized=False)])
    first, last = tokenizer.token_to_id("<s>"), tokenizer.token_to_id("</s>")
    frames = [None, processors.BertProcessing(("</s>", last), ("<s>", first)),
              processors.TemplateProcessing(single="<s> $A </s>", pair="<s> $A </s> $B:1 </s>:1", special_tokens=[("<s>", first), ("</s>", last)]),
              processors.Sequence([processors.ByteLevel(), processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", last)])]),
              processors.RobertaProcessing(("</s>", last), ("<s>", first))]
    if frames[number % len(frames)]:
        tokenizer.post_processor = frames[number % len(frames)]


def write_cases(folder, name, tokenizer, texts):
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    lines = []
    own = tuple(token.content for token in tokenizer.get_added_tokens_decoder().values() if token.special)
    for text in texts:
        if text.startswith(own) or text.endswith(own):
            continue  # Kvasir adds no second BOS
        ids = tokenizer.encode(text).ids
        lines.append(json.dumps({"text": text, "ids": ids, "decoded": tokenizer.decode(ids)}, ensure_ascii=False))
    (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    tokenizer.save(str(folder / f"{name}.json"), pretty=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", type=pathlib.Path, help="a folder for all combinations")
    parser.add_argument("--of", type=pathlib.Path, help="a folder for the cases of one tokenizer.json")
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    arguments = parser.parse_args()
    stress = STRESS.read_bytes().decode()
    files = arguments.files
    if arguments.of:
        tokenizer, *files = files
        texts = TEXTS + stress.split("\n") + [stress] + [file.read_bytes().decode() for file in files]
        write_cases(arguments.of, tokenizer.parent.name + "_" + tokenizer.stem, Tokenizer.from_file(str(tokenizer)), texts)
        return 0
    whole = [file.read_bytes().decode() for file in files]
    for number, (name, (tokenizer, trainer), is_checked_in) in enumerate(grid()):
        if not arguments.full and not is_checked_in:
            continue
        corpus = [without_special(text) for text in TEXTS * 2 + stress.split("\n") + [text[:200_000] for text in whole]]
        tokenizer.train_from_iterator(corpus, trainer(2000 if arguments.full else 400))
        add_tokens(tokenizer, number)
        write_cases(arguments.full or CASES, name, tokenizer, TEXTS + ([stress] + whole if arguments.full else []))
        print(name, tokenizer.get_vocab_size())
    return 0


if __name__ == "__main__":
    sys.exit(main())
