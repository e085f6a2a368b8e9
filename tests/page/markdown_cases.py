"""The page's rendering of Markdown: text, and the HTML of its elements (links without target and rel, code without its
button). Mostly CommonMark's and GFM's own rules; and text made to keep a browser busy."""

def _link(href, text):
    return f'<a href="{href}">{text}</a>'


def _code(text, language=""):
    name = f' data-language="{language}"' if language else ""
    return f'<pre{name}><code tabindex="0">{text}</code></pre>'


CASES = [
    # Within a line.
    ("a **b** *c* ~~d~~ `e` __f__ _g_", "<p>a <strong>b</strong> <em>c</em> <s>d</s> <code>e</code> "
     "<strong>f</strong> <em>g</em></p>"),
    (r"a\*b\* \`c\` \[d](https://e.f) \\ \q", r"<p>a*b* `c` [d](https://e.f) \ \q</p>"),
    (r"`a\*b`", r"<p><code>a\*b</code></p>"),
    ("one\\\ntwo  \nthree\nfour", "<p>one<br>two  <br>three\nfour</p>"),
    ("foo__bar__baz snake_case_name _a_b", "<p>foo__bar__baz snake_case_name _a_b</p>"),
    ("__init__ and `__init__`", "<p><strong>init</strong> and <code>__init__</code></p>"),
    ("foo-_(bar)_ \"_a_\", _b_.", '<p>foo-<em>(bar)</em> "<em>a</em>", <em>b</em>.</p>'),
    ("foo*bar*baz 2 * 3 * 4 * a*", "<p>foo<em>bar</em>baz 2 * 3 * 4 * a*</p>"),
    ("***a*** **a *b* c** *a **b***", "<p><em><strong>a</strong></em> <strong>a <em>b</em> c</strong> "
     "<em>a <strong>b</strong></em></p>"),
    ("*a **b* c _d* e_", "<p>*a <em><em>b</em> c _d</em> e_</p>"),
    ("*foo**bar**baz* **a*b", "<p><em>foo<strong>bar</strong>baz</em> **a*b</p>"),
    ("**重要。**次 **「語」**は", "<p><strong>重要。</strong>次 <strong>「語」</strong>は</p>"),
    ("😀*a*😀 *😀*", "<p>😀<em>a</em>😀 <em>😀</em></p>"),
    ("`` a`b `` ` c` `d", "<p><code>a`b</code> <code> c</code> `d</p>"),
    ("~a~ ~~~b~~~ a ~~b", "<p>~a~ ~~~b~~~ a ~~b</p>"),
    # Links.
    ("[x](https://a.b/c_(d)) [y](<https://a.b/(>)", f"<p>{_link('https://a.b/c_(d)', 'x')} "
     f"{_link('https://a.b/(', 'y')}</p>"),
    ('[x](https://a.b "t)") [y]( mailto:a@b.c \'t\' )', f"<p>{_link('https://a.b', 'x')} {_link('mailto:a@b.c', 'y')}</p>"),
    (r"[x](https://a.b/c\_d\)) [*a*](http://b)", f"<p>{_link('https://a.b/c_d)', 'x')} "
     f"{_link('http://b', '<em>a</em>')}</p>"),
    ("[](https://a.b) ![i](https://a.b)", f"<p>{_link('https://a.b', 'https://a.b')} {_link('https://a.b', 'i')}</p>"),
    ("[![i](https://a.b/i)](https://a.b)", f"<p>{_link('https://a.b', 'i')}</p>"),
    ("[a [b](https://b) c](https://c)", f"<p>[a {_link('https://b', 'b')} c](https://c)</p>"),
    ("*[a*](https://b) *a [b* c]", f"<p>*{_link('https://b', 'a*')} <em>a [b</em> c]</p>"),
    ("[a](javascript:alert(1)) [b](/c) [d](data:x) [e](https://f", "<p>[a](javascript:alert(1)) [b](/c) [d](data:x) "
     "[e](https://f</p>"),
    ("[a](https://b(c) [`d](https://e)`", "<p>[a](https://b(c) [<code>d](https://e)</code></p>"),
    # Lists.
    ("- a\n\n- b\n- c", "<ul><li><p>a</p></li><li><p>b</p></li><li><p>c</p></li></ul>"),
    ("3. a\n\n4. b\n\n   more\n\n\n5. c\n\nend", '<ol start="3"><li><p>a</p></li><li><p>b</p><p>more</p></li>'
     "<li><p>c</p></li></ol><p>end</p>"),
    ("1. a\n2. b\n\ntext\n\n3. c", '<ol start="1"><li>a</li><li>b</li></ol><p>text</p><ol start="3"><li>c</li></ol>'),
    ("- a\n  - b\n\n  - c\n- d", "<ul><li>a<ul><li><p>b</p></li><li><p>c</p></li></ul></li><li>d</li></ul>"),
    ("1. a\n   - b\n     - c\n2. d", '<ol start="1"><li>a<ul><li>b<ul><li>c</li></ul></li></ul></li><li>d</li></ol>'),
    ("1. a\n  - b\n    - c\n  - d", '<ol start="1"><li>a<ul><li>b<ul><li>c</li></ul></li><li>d</li></ul></li></ol>'),
    ("- a\n\t- b\n\t\t- c", "<ul><li>a<ul><li>b<ul><li>c</li></ul></li></ul></li></ul>"),
    ("- a\nb\n  c\n\nd", "<ul><li>a\nb\nc</li></ul><p>d</p>"),
    ("- a\n* b\n+ c", "<ul><li>a</li></ul><ul><li>b</li></ul><ul><li>c</li></ul>"),
    ("- > a\n  > b\n- # c", "<ul><li><blockquote><p>a\nb</p></blockquote></li><li><h3>c</h3></li></ul>"),
    ("- a\n- - -\n-b", "<ul><li>a</li></ul><hr><p>-b</p>"),
    # Code in lists.
    ("1. a\n   ```sh\n   x\n\n     y\n   ```\n2. b", f'<ol start="1"><li>a{_code("x" + chr(10) * 2 + "  y", "sh")}</li>'
     "<li>b</li></ol>"),
    ("- a\n\n  ~~~\n  - x\n  ~~~\n\n  b\n- c", f"<ul><li><p>a</p>{_code('- x')}<p>b</p></li><li><p>c</p></li></ul>"),
    ("1. ```js\n   x\n    y\n   ```\nz", f'<ol start="1"><li>{_code("x" + chr(10) + " y", "js")}</li></ol><p>z</p>'),
    ("- a\n  ```\n  x\n", f"<ul><li>a{_code('x')}</li></ul>"),
    ("- a\n  - b\n    ```\n    x\n    ```\n    c", f"<ul><li>a<ul><li>b{_code('x')}c</li></ul></li></ul>"),
    # Code, and other blocks.
    ("````\n```\n\tx\n````\n```inline``` a", f"{_code('```' + chr(10) + chr(9) + 'x')}<p><code>inline</code> a</p>"),
    ("```c++ title\nx\n``` y\n```", _code("x\n``` y", "c++")),
    ("a:\n|b|c\\|d|\n|-|:-:|\n|`e\\|f`|g|\nh", '<p>a:</p><div class="scroll"><table><thead><tr><th>b</th><th>c|d</th></tr>'
     "</thead><tbody><tr><td><code>e|f</code></td><td>g</td></tr></tbody></table></div><p>h</p>"),
    ("> a\n> - b\n\n## c\n***\nd", "<blockquote><p>a</p><ul><li>b</li></ul></blockquote><h4>c</h4><hr><p>d</p>"),
]

# Each tens of thousands of characters that a reader with a quadratic step takes minutes for.
EXPENSIVE = [
    "*a " * 24_000 + "_a " * 24_000, "*a_ " * 24_000, "a**b" * 24_000, "*a **b " * 16_000 + "c* d** " * 16_000,
    "*" * 80_000 + "a" + "*" * 80_000, "**a" * 24_000 + "b**" * 24_000, "_a*" * 24_000,
    "[" * 80_000, "[" * 40_000 + "]" * 40_000, "[a](https://b" * 12_000, "[a](<https://b" * 12_000,
    "![" * 24_000 + "a" + "](https://b)" * 8_000, "[a](https://b \"" * 12_000, "[a](https://b (" * 12_000,
    "](" * 40_000, "[a](https://" + "(" * 80_000, "[a](" + " " * 80_000, "[a](https://b" + " " * 80_000 + "c",
    "`" * 80_000, "".join("`" * i + " " for i in range(600)), "`a" * 40_001, "\\" * 80_001, "\\*" * 40_000,
    "~~a " * 24_000, " " * 80_000 + "a", "a" + " " * 80_000 + "b", "|" * 80_000 + "\n" + "|-" * 40_000,
    "a|b\n" + "-" + " " * 80_000 + "x", "a|b\n-|-\n" * 12_000, "- " * 40_000, "-" + " " * 80_000 + "x",
    "1. " * 28_000, "> " * 40_000, ">- " * 24_000, "\n".join(" " * i + "- a" for i in range(600)), "- a\n\n" * 16_000,
    "```" + "a" * 80_000 + "`", "```\n~~~\n" * 12_000, "- ```\n" * 16_000, "#" + " " * 80_000, "-" * 80_000 + "a",
    "- - - " * 16_000 + "a", "\n" * 80_000, "a\n" * 40_000, "a  \n" * 24_000, "<" * 80_000, "😀*" * 24_000,
]
