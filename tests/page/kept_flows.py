"""Flows of what the browser keeps, of the models to choose from, and of the start. page_test.py runs them."""
import json
import pathlib
import tempfile

from browser import Page

OTHER = "gemma3:270m"
CALLS = [{"name": "weather", "arguments": '{"city": "<b>Rome</b>"}'}]
CODE = "const a = 'text'; // <b>note</b>\nreturn 12;"
NARROW = {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}


def say(page, text):
    page.set_number("max_tokens", 5)
    page.run("document.getElementById('settings').open = false")
    page.ask(text)
    page.wait_for_answer()


def kept(page):
    return [item.text for item in page.all("#kept .open")]


def needs_name(page):
    page.wait("the model's facts", lambda: "tokens of context" in page["#facts"].text)


class KeptFlows:
    """As Flows in page_test.py."""

    def the_start_has_examples_and_a_curl_line(self, server, driver):
        page = Page(driver, server.url)
        needs_name(page)
        line = page["#curl code"].text
        assert line.startswith(f"curl {server.url}/v1/chat/completions ") and '"model":"smollm2:135m"' in line, line
        self.shoot(page, "start")
        page.run("document.documentElement.dataset.theme = 'dark'")
        self.shoot(page, "start-dark")
        page.set_number("max_tokens", 5)
        page["#examples button"].click()
        page.wait_for_answer()
        assert "hash table" in page.messages()[0] and not page["#start"].is_displayed(), page.messages()

    def conversations_are_kept_found_and_deleted(self, server, driver):
        page = Page(driver, server.url)
        for text in ("Tell me of whales.", "Name a <b>tree</b>."):
            say(page, text)
            page["#new"].click()
        assert kept(page) == ["Name a <b>tree</b>.", "Tell me of whales."], kept(page)
        page["#search"].send_keys("whales tell")
        page.wait("one is found", lambda: kept(page) == ["Tell me of whales."])
        page.press(" nothing")
        page.wait("none is found", lambda: not kept(page) and "Nothing found" in page["#none-kept"].text)
        page.press(page.keys.CONTROL, "a")
        page.press(page.keys.BACKSPACE)
        page.wait("all are back", lambda: len(kept(page)) == 2)
        page.all("#kept .open")[1].click()
        page.wait("its messages", lambda: len(page.messages()) == 2 and "whales" in page.messages()[0])
        driver.refresh()
        page.wait("they are still there", lambda: len(page.messages()) == 2 and "whales" in page.messages()[0])
        page.all("#kept .remove")[0].click()
        assert len(kept(page)) == 2, "the first press asks"
        page.all("#kept .remove")[0].click()
        page.wait("it is gone", lambda: kept(page) == ["Tell me of whales."])
        assert len(page.messages()) == 2, page.messages()

    def an_export_is_imported_as_it_was(self, server, driver):
        page = Page(driver, server.url)
        say(page, "Tell me of whales.")
        before = page.messages()
        with tempfile.TemporaryDirectory(prefix="kvasir-page-") as folder:
            driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": folder})
            page["#export"].click()
            page.wait("the file", lambda: list(pathlib.Path(folder).glob("kvasir-*.json")))
            path = next(pathlib.Path(folder).glob("kvasir-*.json"))
            page.run("localStorage.clear(); newChat()")
            assert not kept(page)
            given = json.loads(path.read_text())
            given["conversations"] += [{"id": "x/y", "messages": []}, 7, {"id": "z", "messages": [{"role": "system"}]}]
            path.write_text(json.dumps(given))
            page["#import-file"].send_keys(str(path))
            page.wait("it is listed", lambda: kept(page) == ["Tell me of whales."])
            path.write_text("no JSON")
            page["#import-file"].send_keys(str(path))
            page.wait("it says so", lambda: "no conversations" in page["#banner"].text)
        page["#kept .open"].click()
        page.wait("its messages", lambda: page.messages() == before)

    def the_model_is_chosen(self, server, driver):
        page = Page(driver, server.url)
        needs_name(page)
        options = [option.text for option in page.all("#model option")]
        assert options == ["smollm2:135m", OTHER + " (loads when asked)"], options
        page.run("const s = document.getElementById('model'); s.value = arguments[0]; s.dispatchEvent(new Event('change'))",
                 OTHER)
        assert OTHER in page["#curl code"].text, page["#curl code"].text
        sent = "window.sent = []; const plain = window.fetch; window.fetch = (path, options) => {" \
               " if (options?.body) window.sent.push(JSON.parse(options.body).model); return plain(path, options); }"
        page.run(sent)
        say(page, "Hello")
        assert page.run("return window.sent") == [OTHER], page.run("return window.sent")
        driver.refresh()
        needs_name(page)
        assert page.run("return document.getElementById('model').value") == OTHER

    def calls_of_tools_are_shown(self, server, driver):
        page = Page(driver, server.url)
        page.run("chat.messages = [{role: 'assistant', content: '', calls: arguments[0]}]; showConversation()", CALLS)
        assert "Calls weather" in page.answer().text and '"city": "<b>Rome</b>"' in page.answer().text, page.answer().text
        made = page.run("const calls = [];"
                        "addCall(calls, {index: 0, function: {name: 'f', arguments: '{\"a\"'}});"
                        "addCall(calls, {index: 0, function: {arguments: ':1}'}}); return calls")
        assert made == [{"name": "f", "arguments": '{"a":1}'}], made
        page.run("document.getElementById('settings').open = true")
        page["#tools"].send_keys("{}")
        page.ask("Hello")
        assert page.run("return document.activeElement.id") == "tools" and len(page.messages()) == 1, page.messages()

    def code_has_colours_and_no_markup(self, server, driver):
        page = Page(driver, server.url)
        page.run("document.getElementById('conversation').hidden = false;"
                 "document.getElementById('conversation').append(...renderMarkdown('```js\\n' + arguments[0] + '\\n```'))", CODE)
        assert page["#conversation pre code"].text == CODE, page["#conversation pre code"].text
        made = page.run("return [...document.querySelectorAll('#conversation pre span')].map(e => [e.className, e.textContent])")
        assert made == [["word", "const"], ["quoted", "'text'"], ["note", "// <b>note</b>"], ["word", "return"],
                        ["number", "12"]], made
        for text in ('"\\' * 40_000, "/*" + "*" * 90_000, "'" * 90_000, "a" * 90_000, "`\\" * 40_000):
            same = page.run("const began = performance.now(), parts = colouredCode(arguments[0], 'js');"
                            "return [parts.map(p => p.textContent ?? p).join('') === arguments[0], performance.now() - began]",
                            text)
            assert same[0] and same[1] < 10_000, (text[:20], same)

    def the_header_of_a_phone_is_one_row(self, server, driver):
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", NARROW)
        page = Page(driver, server.url)
        page.wait("the model", lambda: page.all("#model option"))
        assert not page["#sidebar"].is_displayed()
        self.shoot(page, "start-phone")
        shown = [item.rect for item in page.all("header > *, header [role=tab]") if item.is_displayed()]
        assert page["header"].rect["height"] <= 56 and all(item["y"] < 30 for item in shown), shown
        assert page["#model"].rect["width"] >= 60, page["#model"].rect
        say(page, "Tell me of whales.")
        page["#new"].click()
        page["#menu"].click()
        self.shoot(page, "list-phone")
        assert page.run("return document.activeElement.id") == "search"
        assert page.run("return document.documentElement.scrollWidth") <= NARROW["width"]
        page.press(page.keys.ESCAPE)
        assert not page["#sidebar"].is_displayed() and page.run("return document.activeElement.id") == "menu"
        page["#menu"].click()
        page["#kept .open"].click()
        page.wait("the conversation", lambda: len(page.messages()) == 2 and not page["#sidebar"].is_displayed())
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})

    def a_conversation_needs_no_mouse(self, server, driver):
        page = Page(driver, server.url)
        say(page, "Tell me of whales.")
        page.run("newChat(); document.getElementById('search').focus()")
        page.press(page.keys.TAB)
        page.press(page.keys.ENTER)
        page.wait("it is open", lambda: len(page.messages()) == 2)
        page.run("document.getElementById('search').focus()")
        page.press(page.keys.TAB, page.keys.TAB)
        for _ in range(2):
            page.press(page.keys.ENTER)
        page.wait("it is deleted", lambda: not kept(page) and not page.messages())
