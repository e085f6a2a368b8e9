#!/usr/bin/env python3
"""Fails when a page of docs/ or CONTRIBUTING.md has long sentences.

A page's sentences have at most 16 words on average, and none has more than 30. Headings, tables, code blocks, images and
the generated API.md are not prose. Inline code is one word, a link counts by its text, and a list item is a sentence of
its own. A bold label that opens a paragraph ("**Memory.**", "**Memory:**") is a heading.

    check_prose.py [--means] [FILE...]     checks the files, or the project's pages
    check_prose.py --self-test             checks the checker
"""
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
MEAN_WORDS, MAX_WORDS = 16, 30
GENERATED = {"API.md"}

FENCE = re.compile(r"^\s*(```|~~~)")
ITEM = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+")
NOT_PROSE = re.compile(r"^\s*(?:#|\||!\[|<)")
LABEL = re.compile(r"^\*\*[^*]+[.:]\*\*\s*")
SENTENCE_END = re.compile(r"(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)[.!?][\"')\]*_]*(?=\s|$)")


def paragraphs(text):
    """Line number and text of each paragraph and list item."""
    found, fence, after_blank, in_list = [], None, True, False
    for number, line in enumerate(text.splitlines(), 1):
        mark = FENCE.match(line)
        if mark and fence in (None, mark[1]):
            fence = None if fence else mark[1]
            after_blank = True
            continue
        if fence:
            continue
        if not line.strip() or NOT_PROSE.match(line):
            after_blank = True
            continue
        item = ITEM.match(line)
        if after_blank and not item and line.startswith("    ") and not in_list:
            continue  # an indented code block, which goes on until a line that is not indented
        if item or not line.startswith(" "):
            in_list = bool(item)
        if item or after_blank or not found:
            found.append([])
        found[-1] += [(number, ITEM.sub("", line).strip())]
        after_blank = False
    return found


def plain(text):
    text = re.sub(r"(`+).+?\1", " code ", text)
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", " ", text)
    text = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", text)
    return re.sub(r"<(https?:[^>]+)>", "link", text)


def sentences(text):
    """Line number, number of words and text of each sentence."""
    for lines in paragraphs(text):
        joined, starts = "", []
        for number, line in lines:
            starts.append((len(joined), number))
            joined += line + "\n"
        label = LABEL.match(joined)
        offset = label.end() if label else 0
        # Code and links may span lines and hold full stops; blanking them keeps every position.
        masked = re.sub(r"(`+).+?\1|\]\([^)]*\)", lambda found: "x" * len(found[0]), joined, flags=re.DOTALL)
        ends = [found.end() for found in SENTENCE_END.finditer(masked, offset)] + [len(joined)]
        for end in ends:
            sentence = " ".join(joined[offset:end].split())
            words = sum(1 for word in plain(sentence).split() if re.search(r"\w", word))
            first = offset + len(joined[offset:end]) - len(joined[offset:end].lstrip())
            if words:
                yield max(number for start, number in starts if start <= first), words, sentence
            offset = end


def faults(name, text):
    counted = list(sentences(text))
    found = [f"{name}:{line}: {words} words, the limit is {MAX_WORDS}: {sentence[:60]}..."
             for line, words, sentence in counted if words > MAX_WORDS]
    mean = sum(words for _, words, _ in counted) / max(len(counted), 1)
    if mean > MEAN_WORDS:
        longest = max(counted, key=lambda sentence: sentence[1])
        found.append(f"{name}:{longest[0]}: a mean of {mean:.1f} words a sentence, the limit is {MEAN_WORDS}")
    return found, mean, len(counted)


class SelfTest(unittest.TestCase):
    def check(self, text):
        return faults("page.md", text)[0]

    def test_a_long_sentence_is_found_at_its_line(self):
        text = "# Title\n\nShort one. " + "word " * 20 + "\n" + "word " * 11 + "end.\n\nShort one.\n\nAnother short one.\n"
        self.assertEqual(["page.md:3: 32 words"], [fault[:19] for fault in self.check(text)])

    def test_a_page_of_long_sentences_is_found_by_its_mean(self):
        self.assertEqual(1, len(self.check(("word " * 18 + "end. ") * 3)))
        self.assertEqual([], self.check(("word " * 14 + "end. ") * 3))

    def test_tables_code_headings_and_images_are_not_prose(self):
        long = "word " * 40
        text = f"# {long}\n\n| {long} |\n|---|\n\n```\n{long}\n```\n\n    {long}\n\n![{long}](image.png)\n\n<img alt='{long}'>\n"
        self.assertEqual([], list(sentences(text)))

    def test_list_items_are_sentences_of_their_own(self):
        text = "- one two three\n- four five\n  six\n\n1. seven\n"
        self.assertEqual([3, 3, 1], [words for _, words, _ in sentences(text)])

    def test_code_is_one_word_and_a_link_counts_by_its_text(self):
        text = "Run `kvasir serve MODEL. Then wait` now. See [the page](PAGE.md#a.b c) for 1.25 e.g. here.\n"
        self.assertEqual([3, 7], [words for _, words, _ in sentences(text)])

    def test_a_bold_label_is_a_heading(self):
        self.assertEqual([(2, 2)], [(line, words) for line, words, _ in sentences("\n**Memory and more:** two words.\n")])


def main(arguments):
    if arguments == ["--self-test"]:
        return unittest.main(argv=[sys.argv[0]])
    show_means = "--means" in arguments
    paths = [pathlib.Path(name) for name in arguments if name != "--means"]
    paths = paths or [path for path in [ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
                      if path.exists() and path.name not in GENERATED]
    found, num_sentences = [], 0
    for path in paths:
        name = path.resolve().relative_to(ROOT) if path.resolve().is_relative_to(ROOT) else path
        of_page, mean, count = faults(name, path.read_text(encoding="utf-8"))
        found += of_page
        num_sentences += count
        if show_means:
            print(f"{name}: {count} sentences, {mean:.1f} words each")
    print("\n".join(found) or f"{len(paths)} pages, {num_sentences} sentences within their limits")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
