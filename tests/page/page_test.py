#!/usr/bin/env python3
"""The page's flows in Chromium without a window, against the real server and model.

    page_test.py [--only TEXT] [--screenshots FOLDER]

Exit codes: 0 all hold, 1 one does not, 2 wrong usage, 77 skipped (no model, browser or selenium).
"""
import argparse
import itertools
import json
import pathlib
import sys
import threading
import time
import traceback
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "clients"))
from served import need_model, run_in_venv, serving, skip  # noqa: E402

from browser import CHROMIUM, CONTRAST, DRIVER, Page, browser, complaints  # noqa: E402
from kept_flows import OTHER, KeptFlows  # noqa: E402
from markdown_cases import CASES, EXPENSIVE  # noqa: E402

MODEL = "smollm2:135m"
LEAST_CONTRAST = 4.5
PHONE = (360, 740)
MOST_RENDER_MS = 10_000  # on a busy machine
# A text as it is rendered, without the buttons and the attributes of links. All its beginnings are rendered too, as
# they come.
RENDERED = """
const holder = document.createElement('div'), text = arguments[0];
for (let end = 0; end <= text.length; ++end) holder.replaceChildren(...renderMarkdown(text.slice(0, end)));
for (const button of holder.querySelectorAll('button')) button.remove();
for (const span of holder.querySelectorAll('pre span')) span.replaceWith(span.textContent);
for (const link of holder.querySelectorAll('a')) for (const name of ['target', 'rel']) link.removeAttribute(name);
return holder.innerHTML;
"""
HOSTILE = "# <img src=x onerror=alert(1)>\n<script>document.title='taken'</script>\n[a](javascript:alert(1)) " \
          "![b](http://elsewhere.example/b.png) **<b>bold</b>** `<i>code</i>`\n\n```html\n<script>alert(2)</script>\n```"
WIDE = f"```js\n{'x' * 200}\n```\n\n| name | what it means |\n|---|---|\n| a | {'so much ' * 9}|"


class Flows(KeptFlows):
    """Each method is a test with a server and a tab of its own making."""

    def __init__(self, screenshots):
        self.screenshots = screenshots

    def shoot(self, page, name):
        if self.screenshots:
            page.driver.save_screenshot(str(self.screenshots / f"{name}.png"))

    def chat_streams_and_keeps_what_was_said(self, server, driver):
        page = Page(driver, server.url)
        page.wait("the model's facts", lambda: "8192 tokens" in page["#facts"].text)
        page.set_number("temperature", 0)
        page.run("document.getElementById('settings').open = false")
        page.ask("What is the capital of France?")
        page.wait("a first piece", lambda: page.answer().find_element(page.By.CSS_SELECTOR, ".text").text)
        page.wait_for_answer()
        assert "Paris" in page.answer().text, page.messages()
        assert "tokens/s" in page.answer().text and "first after" in page.answer().text, page.messages()
        page.ask("And of Italy?")
        page.wait_for_answer()
        assert len(page.messages()) == 4 and "cached" in page.answer().text, page.messages()
        self.shoot(page, "chat")
        page["#new"].click()
        assert not page.messages()

    def stop_frees_the_server(self, server, driver):
        page = Page(driver, server.url)
        page.set_number("max_tokens", 4000)
        page.ask("Write a very long story about the sea.")
        page.wait("some text", lambda: len(page.answer().text) > 40)
        page["#prompt"].send_keys(page.keys.ESCAPE)
        page.wait_for_answer()
        assert "Stopped." in page.answer().text, page.messages()
        page.wait("nothing runs", lambda: operations_of(server)["running"] == 0)
        assert operations_of(server)["finished"]["cancelled"] == 1

    def a_thought_is_folded_away(self, server, driver):
        page = Page(driver, server.url)
        page.run("chat.messages = [{role: 'assistant', content: 'Blue.', reasoning: '<b>The sky.</b>'}]; showConversation()")
        thought = page["details.reasoning .thought"]
        assert not thought.is_displayed() and "Blue." in page.answer().text
        page["details.reasoning summary"].click()
        assert thought.is_displayed() and thought.text == "<b>The sky.</b>", thought.text

    def a_new_chat_ends_the_answer(self, server, driver):
        page = Page(driver, server.url)
        cancelled = operations_of(server)["finished"]["cancelled"]
        page.set_number("max_tokens", 4000)
        page.ask("Write a very long story about the sea.")
        page.wait("some text", lambda: len(page.answer().text) > 40)
        page["#new"].click()
        assert not page.messages() and page["#send"].is_displayed() and not page["#stop"].is_displayed()
        page.set_number("max_tokens", 5)
        page.ask("Hello")
        page.wait_for_answer()
        assert len(page.messages()) == 2 and "tokens/s" in page.answer().text, page.messages()
        assert operations_of(server)["finished"]["cancelled"] == cancelled + 1

    def edit_and_retry_forget_what_came_after(self, server, driver):
        page = Page(driver, server.url)
        page.set_number("max_tokens", 12)
        for text in ("Say one.", "Say two."):
            page.ask(text)
            page.wait_for_answer()
        page["#prompt"].send_keys(page.keys.ARROW_UP)  # the last message, to be changed
        page.press(page.keys.CONTROL, "a")
        page.press("Say three.", page.keys.ENTER)
        page.wait("the changed message", lambda: len(page.messages()) == 4 and "Say three." in page.messages()[2])
        page.wait_for_answer()
        page.all(".message.user button")[0].click()
        page.press(page.keys.ESCAPE)
        assert len(page.messages()) == 4, page.messages()
        page.all(".message.user button")[0].click()
        page.press(" And more.", page.keys.ENTER)
        page.wait("what came after is gone", lambda: len(page.messages()) == 2)
        page.wait_for_answer()
        assert "Say one. And more." in page.messages()[0], page.messages()
        page.all(".message.assistant button")[-1].click()
        page.wait_for_answer()
        assert len(page.messages()) == 2, page.messages()

    def what_is_refused_does_not_spoil_what_follows(self, server, driver):
        page = Page(driver, server.url)
        page.set_number("max_tokens", 3)
        page.run("document.getElementById('prompt').value = 'word '.repeat(9000)")
        page["#send"].click()
        page.wait_for_answer()
        assert "too long" in page.answer().text and "left out" in page.answer().text, page.answer().text
        page.ask("Hello")
        page.wait_for_answer()
        assert "tokens/s" in page.answer().text and len(page.messages()) == 4, page.answer().text

    def a_wrong_number_is_not_sent(self, server, driver):
        page = Page(driver, server.url)
        page.run("document.getElementById('settings').open = true")
        for name, text in (("temperature", "1e"), ("seed", "9007199254740993")):
            page["#" + name].send_keys(text)
            page.ask("Hello")
            assert not page.messages() and page.run("return document.activeElement.id") == name, page.messages()
            page["#" + name].clear()
            page["#prompt"].clear()
        page.set_number("max_tokens", 3)
        page.ask("Hello")
        page.wait_for_answer()
        assert "tokens/s" in page.answer().text, page.messages()

    def markdown_is_never_markup(self, server, driver):
        page = Page(driver, server.url)
        page.run("document.getElementById('conversation').append(...renderMarkdown(arguments[0]))", HOSTILE)
        made = page.run("return [...document.querySelectorAll('#conversation *')].map(e => e.localName)")
        assert not {"script", "img", "b", "i"} & set(made), made
        assert {"h3", "strong", "code", "pre", "a"} <= set(made), made
        links = page.run("return [...document.querySelectorAll('#conversation a')].map(e => [e.href, e.rel])")
        assert links == [["http://elsewhere.example/b.png", "noopener noreferrer"]], links
        text = "| a | b |\n|---|---|\n| 1 | 2 |\n\n- x\n  - y\n- z\n\n3. three\n\n> quoted\n\n---"
        made = page.run("return renderMarkdown(arguments[0])"
                        ".map(e => e.outerHTML).join('')", text)
        assert "<td>1</td><td>2</td>" in made and "<li>x<ul><li>y</li></ul></li><li>z</li>" in made, made
        assert '<ol start="3">' in made and "<blockquote><p>quoted</p></blockquote><hr>" in made, made
        assert driver.title == "Kvasir"
        deepest = page.run("return renderMarkdown(arguments[0])[0].querySelectorAll('blockquote').length", "> " * 4000 + "a")
        assert deepest <= 16, deepest

    def markdown_follows_the_rules(self, server, driver):
        page = Page(driver, server.url)
        for text, wanted in CASES:
            made = page.run(RENDERED, text)
            assert made == wanted, f"{text!r}\nmakes  {made}\nwanted {wanted}"

    def no_markdown_freezes_the_page(self, server, driver):
        page = Page(driver, server.url)
        for text in EXPENSIVE:
            took = page.run("const began = performance.now(); renderMarkdown(arguments[0]); return performance.now() - began",
                            text)
            assert took < MOST_RENDER_MS, f"{text[:40]!r}..., {len(text)} characters: {took:.0f} ms"

    def a_key_is_asked_for(self, server, driver):
        page = Page(driver, server.url)
        dialog = "#key-dialog[open]"
        page.wait("the dialog", lambda: page[dialog])
        page["#key-input"].send_keys("kv-\u2018x\u2019", page.keys.ENTER)
        page.wait("it says what a key has", lambda: "no spaces" in page["#key-reason"].text and page[dialog])
        page["#key-input"].send_keys("wrong", page.keys.ENTER)
        page.wait("it says why it asks again", lambda: "not known" in page["#key-reason"].text and page[dialog])
        self.shoot(page, "key")
        page["#key-input"].send_keys(server.keys["ann"], page.keys.ENTER)
        page.wait("the model's facts", lambda: "8192 tokens" in page["#facts"].text)
        page.set_number("max_tokens", 5)
        page.ask("Hello")
        page.wait_for_answer()
        assert "tokens/s" in page.answer().text, page.messages()
        with streams(server, 1, server.keys["bob"]):
            page["#operations-tab"].click()
            page.wait("numbers", lambda: page.all(".tile"))
            page.wait("the other runs", lambda: page.number("Running") == 1)
            assert "bob" not in page["#requests"].text, page["#requests"].text

    def a_key_is_not_asked_for_twice(self, server, driver):
        page = Page(driver, server.url + "/#operations")
        page.wait("the dialog", lambda: page["#key-dialog[open]"])
        page.press(page.keys.ESCAPE)
        time.sleep(3)  # in which the view has asked again, twice at least
        assert not page.all("#key-dialog[open]"), "who cancels is left alone"
        assert "wants an API key" in page["#banner"].text and page.all("#operations-view.stale"), page["#banner"].text
        page["#key"].click()
        page["#key-input"].send_keys(server.keys["ann"], page.keys.ENTER)
        page.wait("the model's facts", lambda: "8192 tokens" in page["#facts"].text)
        page.wait("numbers", lambda: page.all(".tile") and not page.all("#operations-view.stale"))

    def operations_show_a_load(self, server, driver):
        with streams(server, 6):
            page = Page(driver, server.url + "/#operations")
            page.wait("requests", lambda: len(page.all("#requests tbody tr")) == 6)
            page.wait("stages", lambda: "generating" in page["#requests"].text)
            page.wait("KV", lambda: page.all("#kv-map i") and "MiB" in page["#kv-table"].text)
            page.wait("a rate", lambda: page.number("Tokens/s") > 0)
            page.wait("latency", lambda: "ms" in page["#charts"].text)
            # Long enough for the batch, whose number is of ten seconds, to be the load's.
            page.wait("the batch", lambda: page.number("Batch") > 2)
            driver.set_window_size(1100, 1330)
            if self.screenshots:
                short_answers(server, 60)  # so that the picture shows five minutes' beginning
            self.shoot(page, "operations")
            assert "secret" not in driver.page_source
        page.wait("it is over", lambda: "None at the moment" in page["#requests"].text)
        page.wait("what was computed is cached", lambda: "–" not in page.all("#kv-table tbody tr")[2].text)

    def operations_look_once_a_second(self, server, driver):
        page = Page(driver, server.url)
        page.run("window.asked = 0; const plain = window.fetch; window.fetch = (path, options) => {"
                 "  if (path === '/v1/operations') ++window.asked; return plain(path, options); };")
        for _ in range(10):
            page.run("showView('operations'); return new Promise(done => setTimeout(done, 5))")
            page.run("showView('chat')")
        page.run("showView('operations'); window.asked = 0;")
        time.sleep(4)
        assert 1 <= page.run("return window.asked") <= 5, page.run("return window.asked")
        # In one go: the page's own next look would be one more.
        assert page.run("keepLook({...operations.looks.at(-1), steps: {count: -1}}); return operations.looks.length") == 1, \
            "another process counts anew"

    def a_dropped_connection_loses_nothing(self, server, driver):
        page = Page(driver, server.url)
        page.wait("the model's facts", lambda: "8192 tokens" in page["#facts"].text)
        page.set_number("max_tokens", 4000)
        page.ask("Write a very long story about the sea.")
        page.wait("some text", lambda: len(page.answer().text) > 40)
        server.process.kill()
        server.process.wait()
        page.wait_for_answer()
        assert "connection" in page.answer().text and len(page.answer().text) > 60, page.messages()
        page["#operations-tab"].click()
        page.wait("the banner", lambda: "no connection" in page["#banner"].text)
        with serving(MODEL, port=server.port):
            page.wait("it is back", lambda: not page["#banner"].is_displayed() and page.all(".tile"))
            page["#chat-tab"].click()
            page.set_number("max_tokens", 5)
            page.all(".message.assistant button")[-1].click()
            page.wait_for_answer()
            assert "5 tokens" in page.answer().text, page.messages()

    def the_keyboard_reaches_everything(self, server, driver):
        page = Page(driver, server.url)
        page.set_number("max_tokens", 5)
        page.ask("Hello")
        page.wait_for_answer()
        page.run("document.activeElement.blur(); scrollTo(0, 0)")
        page["body"].send_keys(page.keys.TAB)
        reached = set()
        for _ in range(40):
            reached.add(page.run("const e = document.activeElement; return e.id || e.ariaLabel || e.textContent.trim()"))
            page.press(page.keys.TAB)
        wanted = {"Skip to content", "chat-tab", "theme", "key", "prompt", "send", "new", "temperature", "system",
                  "Edit this message", "Copy this answer", "Ask for this answer again"}
        assert wanted <= reached, wanted - reached
        page.run("document.getElementById('chat-tab').focus()")
        page.press(page.keys.ARROW_RIGHT)
        page.wait("the other view", lambda: page["#operations-view"].is_displayed())
        outline = page.run("return getComputedStyle(document.activeElement).outlineStyle")
        assert page.run("return document.activeElement.id") == "operations-tab" and outline != "none"

    def everybody_can_read_it(self, server, driver):
        page = Page(driver, server.url)
        page.set_number("max_tokens", 20)
        page.ask("Hello")
        page.wait_for_answer()
        for theme in ("light", "dark"):
            page.run("document.documentElement.dataset.theme = arguments[0]", theme)
            for view in ("chat", "operations"):
                page[f"#{view}-tab"].click()
                page.wait("the view", lambda: page[f"#{view}-view"].is_displayed() and (view == "chat" or page.all(".tile")))
                ratio, where = page.run(CONTRAST)
                assert ratio >= LEAST_CONTRAST, f"{theme} {view}: contrast {ratio:.2f} of {where}"
        unnamed = page.run("return [...document.querySelectorAll('button, input, textarea')].filter(e => "
                           "!(e.textContent.trim() || e.ariaLabel || e.labels?.length)).map(e => e.outerHTML)")
        assert not unnamed, unnamed
        self.shoot(page, "operations-dark")

    def it_fits_a_phone(self, server, driver):
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": PHONE[0], "height": PHONE[1], "deviceScaleFactor": 2, "mobile": True})
        page = Page(driver, server.url)
        page.set_number("max_tokens", 30)
        page.run("document.getElementById('settings').open = false")
        page.ask("Hello")
        page.wait_for_answer()
        self.shoot(page, "phone")
        for view in ("chat", "operations"):
            page[f"#{view}-tab"].click()
            page.wait("the view", lambda: page[f"#{view}-view"].is_displayed())
            assert page.run("return document.documentElement.scrollWidth") <= PHONE[0], view
        page["#chat-tab"].click()
        page.run("document.querySelector('.message.assistant .text').replaceChildren(...renderMarkdown(arguments[0]))", WIDE)
        assert page.run("return document.documentElement.scrollWidth") <= PHONE[0]
        button, code = page["pre button"].rect, page["pre code"].rect
        assert button["y"] + button["height"] <= code["y"], "the button covers code"
        assert page["th"].rect["height"] < 40, "words of a table are broken"
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})

    def nothing_comes_from_elsewhere(self, server, driver):
        page = Page(driver, server.url)
        page.set_number("max_tokens", 5)
        page.ask("Hello")
        page.wait_for_answer()
        page["#operations-tab"].click()
        page.wait("numbers", lambda: page.all(".tile"))
        asked = page.run("return performance.getEntriesByType('resource').map(e => e.name)")
        assert asked and all(name.startswith(server.url + "/") for name in asked), asked
        size = page.run("return performance.getEntriesByType('navigation')[0].decodedBodySize")
        assert size <= 200 << 10, size


def operations_of(server):
    return json.load(urllib.request.urlopen(server.url + "/v1/operations", timeout=30))


def short_answers(server, seconds):
    """About two a second, whose prompts begin alike."""
    end = time.monotonic() + seconds
    for i in itertools.takewhile(lambda _: time.monotonic() < end, itertools.count()):
        body = {"prompt": "What all of them begin with. " * 20 + f"Question {i}:", "max_tokens": 12}
        urllib.request.urlopen(urllib.request.Request(
            server.url + "/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}), timeout=60)
        time.sleep(0.3)


class streams:
    """So many long generations at once, for as long as it is entered."""

    def __init__(self, server, count, key=None):
        self.over, self.ready = threading.Event(), threading.Semaphore(0)
        self.count = count
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
        self.threads = [threading.Thread(target=self.run, args=(server, headers, i)) for i in range(count)]

    def run(self, server, headers, i):
        body = {"prompt": f"A secret story, number {i}. " + "It goes on and on. " * 40, "max_tokens": 6000,
                "stream": True, "ignore_eos": True, "kv_budget": 0.4}
        request = urllib.request.Request(server.url + "/v1/completions", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            self.ready.release()
            while not self.over.is_set() and answer.readline():
                pass

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        for _ in range(self.count):
            assert self.ready.acquire(timeout=60)

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()


KEYS = {"keys": [{"name": "ann"}, {"name": "bob"}]}
OPTIONS = {"the_model_is_chosen": [OTHER]}
SETUPS = {"a_key_is_asked_for": KEYS, "a_key_is_not_asked_for_twice": KEYS}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", metavar="TEXT", help="flows whose name has it")
    parser.add_argument("--screenshots", type=pathlib.Path, metavar="FOLDER")
    args = parser.parse_args()
    need_model(MODEL)
    if not CHROMIUM or not DRIVER:
        skip("no chromium and chromedriver (Debian's chromium and chromium-driver)")
    run_in_venv(["selenium"])
    if args.screenshots:
        args.screenshots.mkdir(parents=True, exist_ok=True)
    names = [name for name, value in (vars(Flows) | vars(KeptFlows)).items() if callable(value) and not name.startswith("__")
             and name != "shoot" and args.only in name]
    if not names:
        parser.error(f"no flow's name has {args.only!r}")
    flows, failed = Flows(args.screenshots), 0
    for name in names:
        try:
            with serving(MODEL, SETUPS.get(name), OPTIONS.get(name, ())) as server, browser() as driver:
                getattr(flows, name)(server, driver)
                said = complaints(driver)
                assert not said, said
            print(f"holds  {name}", flush=True)
        except Exception:  # whatever went wrong, the others still tell something
            failed += 1
            print(f"FAILS  {name}\n{traceback.format_exc()}", flush=True)
    print(f"{failed} of {len(names)} flows fail")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
