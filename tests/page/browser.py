"""Chromium without a window, and what the tests do with the page in it."""
import contextlib
import shutil
import time

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
WAIT_S = 60

# The least contrast of any text with what lies behind it, and where (WCAG 2.2, 1.4.3); text without a box of its own
# has no contrast. Runs in the page.
CONTRAST = """
const channel = value => { value /= 255; return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4; };
const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
const rgb = colour => {
  canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
  return canvas.getImageData(0, 0, 1, 1).data;
};
const luminance = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
const groundOf = element => {
  for (; element; element = element.parentElement) {
    const colour = rgb(getComputedStyle(element).backgroundColor);
    if (colour[3] === 255) return colour;
  }
  return [255, 255, 255, 255];
};
let least = [99, ''];
for (const element of document.querySelectorAll('body *')) {
  const says = [...element.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
  if (!says || element.closest('script,style') || !element.checkVisibility()) continue;
  const a = luminance(rgb(getComputedStyle(element).color)), b = luminance(groundOf(element));
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (ratio < least[0]) least = [ratio, element.outerHTML.slice(0, 120)];
}
return least;
"""


class Page:
    """One tab."""

    def __init__(self, driver, url):
        from selenium.webdriver.common.by import By
        from selenium.webdriver.common.keys import Keys
        self.driver, self.url, self.By, self.keys = driver, url, By, Keys
        driver.get(url)

    def __getitem__(self, css):
        return self.driver.find_element(self.By.CSS_SELECTOR, css)

    def all(self, css):
        return self.driver.find_elements(self.By.CSS_SELECTOR, css)

    def run(self, script, *args):
        return self.driver.execute_script(script, *args)

    def wait(self, what, condition):
        """Until the condition holds; it may fail to find things meanwhile."""
        from selenium.common.exceptions import WebDriverException
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            with contextlib.suppress(WebDriverException, IndexError):
                if condition():
                    return
            time.sleep(0.02)
        raise AssertionError(f"{what}: not within {WAIT_S} s; the page says:\n{self['body'].text}")

    def press(self, *keys):
        self.driver.switch_to.active_element.send_keys(*keys)

    def ask(self, text):
        self["#prompt"].send_keys(text, self.keys.ENTER)

    def wait_for_answer(self):
        self.wait("the answer is over", lambda: self["#send"].is_displayed() and self.all(".message.assistant"))

    def messages(self):
        return [message.text for message in self.all(".message")]

    def number(self, name):
        """On the tile of that name; 0 where there is none yet."""
        for tile in self.all(".tile"):
            found, number, _ = tile.text.split("\n")
            if found == name:
                return 0.0 if number == "–" else float(number)
        raise IndexError(name)

    def answer(self):
        return self.all(".message.assistant")[-1]

    def set_number(self, name, value):
        self.run("const d = document.getElementById('settings'); d.open = true;")
        self["#" + name].clear()
        self["#" + name].send_keys(str(value))


def complaints(driver):
    """The browser's console output besides refused requests, which tests provoke."""
    return [entry["message"] for entry in driver.get_log("browser") if entry["source"] != "network"]


@contextlib.contextmanager
def browser(width=1100, height=800):
    from selenium import webdriver
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                 "--hide-scrollbars", f"--window-size={width},{height}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    try:
        yield driver
    finally:
        driver.quit()
