"""Uses one application of docs/applications.md in Chromium, as its readers would: browser.py NAME.

It runs beside the commands of the page, in their network. Exits with 1 and says what was not seen.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable

from playwright.sync_api import Page, expect, sync_playwright

BASE = "http://127.0.0.1:8000"
SECONDS = 40.0
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage"]


def chainlit(page: Page) -> None:
    """A message and its answer, by WebSocket alone; twice, so that with two workers both answer in most runs."""
    for number in range(2):
        page.goto(f"{BASE}/chat/")
        answer = page.get_by_text(f"You said {number}", exact=True)
        # What is typed before the page is connected is gone then.
        until(answer.is_visible, lambda: (page.locator("#chat-input").fill(str(number)), page.keyboard.press("Enter")))


def channels(page: Page) -> None:
    """Two sockets of one group, and none from another site."""
    page.goto(BASE)
    said = page.evaluate("""async () => {
        const open = () => new Promise((done, failed) => {
            const socket = new WebSocket("ws://127.0.0.1:8000/chat")
            socket.onopen = () => done(socket)
            socket.onerror = () => failed(new Error("no connection"))
        })
        const [one, two] = [await open(), await open()]
        const heard = new Promise(done => { two.onmessage = event => done(event.data) })
        one.send("Hello all")
        return await heard
    }""")
    assert said == "Hello all", said


def dash(page: Page) -> None:
    page.goto(BASE)
    expect(page.locator("#hello")).to_have_text("Hello Ann")
    page.locator("#name").fill("Bob")
    expect(page.locator("#hello")).to_have_text("Hello Bob")


def gradio(page: Page) -> None:
    """The answer comes as an event stream."""
    page.goto(BASE)
    page.get_by_label("name").fill("Bob")
    page.get_by_role("button", name="Submit").click()
    expect(page.get_by_label("output")).to_have_value("Hello Bob 3")


def label_studio(page: Page) -> None:
    page.goto(f"{BASE}/user/login/")
    page.locator("input[name=email]").fill("ann@example.com")
    page.locator("input[name=password]").fill("a long one")
    page.locator("button[type=submit]").first.click()
    expect(page.get_by_text("demo").first).to_be_visible()


def nicegui(page: Page) -> None:
    """A click goes to the server by a WebSocket, and the label comes back by it."""
    page.goto(BASE)
    until(page.get_by_text("Hello Ann").is_visible, lambda: page.get_by_role("button", name="Greet").click())


def prefect(page: Page) -> None:
    page.goto(f"{BASE}/runs")
    expect(page.get_by_text("hello").first).to_be_visible()


def trac(page: Page) -> None:
    page.goto(f"{BASE}/newticket")
    page.goto(f"{BASE}/wiki")
    expect(page).to_have_title("Demo")


def zope(page: Page) -> None:
    page.goto(BASE)
    expect(page.get_by_role("heading").first).to_contain_text("Zope")


def until(is_seen: Callable[[], bool], act: Callable[[], object]) -> None:
    """Acts and looks again, like a user whose first click came before the page was ready."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        act()
        for _ in range(20):
            if is_seen():
                return
            time.sleep(0.1)
    raise AssertionError("it was not seen")


def main(name: str) -> int:
    expect.set_options(timeout=SECONDS * 1000)
    use: Callable[[Page], None] = globals()[name.replace("-", "_")]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), headless=True, args=FLAGS)
        page = browser.new_page()
        failed: list[str] = []
        page.on("response", lambda response: failed.append(f"{response.status} {response.url}") if response.status >= 500 else None)
        try:
            use(page)
        except Exception as error:
            print(f"browser: {name}: {error}\n{page.content()[:2000]}")
            return 1
        finally:
            browser.close()
    print(*failed, f"browser: {name}: seen", sep="\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
