# SPDX-License-Identifier: Apache-2.0
"""The page of `mortise serve` in a browser, as one who looks after locks uses it:

    page.py CHROMIUM ADDRESS TOKEN PICTURES PREFIX

Somebody holds "deploy" and two wait; one more lock has a name and a holder that would be scripts if
they were not text. Ends with deploy taken from its holder. Prints OK.
"""

import os
import sys

from browser import Browser

NAME = "<script>document.title='owned'</script><img src=x>"
LABEL = '"><img src=y onerror=document.title=1>'
ROWS = "document.querySelectorAll('#locks tbody tr').length"
NAMES = "[...document.querySelectorAll('#locks tbody a')].map(a => a.textContent).join('|')"
PLACES = "[...document.querySelectorAll('#queue tbody tr')].map(r => r.cells[0].textContent).join()"
FENCES = "[...document.querySelectorAll('#queue tbody tr')].map(r => r.cells[3].textContent).join()"
chromium, address, token, pictures, prefix = sys.argv[1:]
through_agent = os.environ.get("MORTISE_URL", "").startswith("agent:")


def same(found, wanted):
    assert found == wanted, f"{found!r} is not {wanted!r}"


def picture(browser, name):
    os.makedirs(pictures, exist_ok=True)
    browser.screenshot(os.path.join(pictures, f"{prefix}-{name}.png"))


def fits(browser):
    assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")


def log_in(browser):
    browser.until("document.querySelector('#login').open")
    same(browser.text("#locks tbody"), "")
    browser.click("#token")
    browser.write("not the token at all")
    browser.press("Enter")
    browser.until("document.querySelector('#login-wrong').textContent !== ''")
    browser.click("#token")
    browser.write(token)
    browser.press("Enter")
    browser.until(ROWS + " === 2")
    assert all("401" in complaint for complaint in browser.complaints), browser.complaints
    browser.complaints.clear()


def come_with_the_token(browser):
    """By the address that serve prints when it has made the token; and by one that is mistyped."""
    browser.evaluate("sessionStorage.clear()")
    browser.open("about:blank")
    browser.open(address + "#token=" + token)
    browser.until(ROWS + " === 2")
    same(browser.evaluate("location.hash"), "")
    assert not browser.evaluate("document.querySelector('#login').open")
    browser.evaluate("location.hash = '#lock=%'")
    browser.until("document.querySelector('#one-name').textContent === '%'")
    browser.evaluate("location.hash = ''")
    browser.until("!document.querySelector('#all').hidden")


def read_table(browser):
    """The busiest lock comes first; what others wrote is text."""
    browser.until("document.querySelector('#state').textContent === 'live'")
    same(browser.evaluate(NAMES), "deploy|" + NAME)
    browser.until("document.querySelector('#agent').hidden === false" if through_agent else
                  "document.querySelector('#agent').hidden === true")
    if through_agent:
        assert "4 tickets, 2 of them held" in browser.text("#agent"), browser.text("#agent")
    same(browser.evaluate("document.querySelectorAll('main script, main table img').length"), 0)
    same(browser.evaluate("document.title"), "(2) mortise")
    assert browser.text("#locks tbody tr:last-child td:last-child").startswith(LABEL + " · ")
    same(browser.text("#tile-waiters"), "2")
    same(browser.text("#locks tbody tr td:nth-child(3)"), "2")
    assert "first" in browser.text("#locks tbody tr td:last-child")
    assert browser.text("#locks tbody tr td:nth-child(4)").endswith(" s")
    same(browser.text("#locks tbody tr:last-child td:nth-child(4)"), "–")
    same(browser.evaluate("document.querySelector('[aria-sort]').innerText.trim()"), "Longest wait")
    same(browser.text("#tile-wait-name"), "deploy")
    assert browser.text("#tile-hold-name") in ("deploy", NAME)  # one look may have seen both begin
    assert browser.text("#tile-hold").endswith(" s")
    browser.until("document.querySelector('#chart-waiters path.trace') !== null")
    counts_at_least(browser, "#tile-rate + small", "#chart-rate figcaption",
                    "#locks th:has([data-sort=changes])", "main > p:last-child")


def counts_at_least(browser, *places):
    """Where looks have counted, the page says that it is at least so much."""
    for place in places:
        assert "at least" in browser.text(place), browser.text(place)


def sort_and_filter(browser):
    browser.click("[data-sort=name]")
    browser.until(f"{NAMES}.startsWith('<script>')")
    same(browser.evaluate("document.querySelector('[aria-sort]').innerText.trim()"), "Name")
    browser.press("/")
    browser.write("dep")
    browser.until(f"{NAMES} === 'deploy'")
    same(browser.text("#count"), "1 found, 2 in all")
    browser.press("Escape")
    browser.evaluate("document.querySelector('#filter').value = ''")
    browser.click("[data-sort=waiters]")
    browser.until(f"{NAMES}.startsWith('deploy|')")


def everything_has_a_name(browser):
    browser.call("Accessibility.enable")
    for node in browser.call("Accessibility.getFullAXTree")["nodes"]:
        role = node.get("role", {}).get("value")
        if role in ("button", "link", "searchbox", "textbox", "image", "table") and not node["ignored"]:
            assert node.get("name", {}).get("value"), node
    browser.call("Accessibility.disable")


def many_locks(browser):
    """A thousand and one: shown in two steps, with long names that squeeze no other column."""
    browser.evaluate("""(() => {
        const list = {all: 1001, found: 1001, locks: Array.from({length: 1001}, (_, i) => ({
            name: "tenant-".repeat(28) + i, kind: "mutex", use: "", holders: 1, waiters: 0, wait_ms: null,
            handovers_per_second: 0, first: {mode: "", age_ms: 1000, fence_text: "1", label: "x", pid: 1}}))};
        window.answers = window.fetch;
        window.fetch = async (path, more) => path.startsWith("api/locks")
            ? new Response(JSON.stringify({...list, locks: list.locks.slice(0, +/limit=([0-9]+)/.exec(path)[1])}))
            : window.answers(path, more);
        refresh();
    })()""")
    browser.until(ROWS + " === 1000")
    same(browser.text("#count"), "1,000 of 1,001")
    fits(browser)
    assert browser.evaluate("document.querySelector('#locks td.wide').clientWidth > 120")
    same(browser.evaluate("getComputedStyle(document.querySelector('#locks td.word')).whiteSpace"), "nowrap")
    browser.click("#more button")
    browser.until(ROWS + " === 1001")
    browser.until("document.querySelector('#more').hidden")
    browser.evaluate("window.fetch = window.answers, refresh()")
    browser.until(ROWS + " === 2")


def open_by_keys(browser):
    browser.evaluate("document.activeElement.blur()")
    browser.press("j")
    same(browser.evaluate("document.activeElement.textContent"), "deploy")
    browser.press("Enter")
    browser.until(PLACES + " === 'holds,1,2'")
    same(browser.text("#one-name"), "deploy")
    same(browser.evaluate("document.activeElement.id"), "one-name")
    same(browser.text("#one-state"), "held")
    counts_at_least(browser, "#one-counts")


def take_away(browser):
    fences = browser.evaluate(FENCES).split(",")
    browser.click("#queue tbody tr button.danger")
    browser.until("document.querySelector('#ask').open")
    assert fences[0] in browser.text("#ask-who") and browser.text("#ask-name") == "deploy"
    picture(browser, "ask")
    browser.press("Enter")  # the focus is on what does nothing
    browser.until("!document.querySelector('#ask').open")
    same(browser.evaluate(FENCES), ",".join(fences))
    browser.click("#queue tbody tr button.danger")
    browser.click("#ask-yes")
    browser.until(f"!{FENCES}.split(',').includes('{fences[0]}')")
    browser.until(f"{PLACES} === 'holds,1'")
    same(browser.evaluate(FENCES), ",".join(fences[1:]))
    browser.until("document.querySelector('#waits caption').textContent.includes('1 seen')")
    same(browser.text("#previous tbody tr td:nth-child(3)"), fences[0])
    assert "first" in browser.text("#previous tbody tr td:last-child")
    counts_at_least(browser, "#previous th:nth-child(2)")


def go_back(browser):
    browser.press("Escape")
    browser.until("!document.querySelector('#all').hidden")
    same(browser.evaluate("document.activeElement.textContent"), "deploy")


def look_at_it(browser):
    """Light and dark, wide and narrow."""
    for name, width, dark in (("light", 1280, False), ("dark", 1280, True), ("window", 1000, False),
                              ("phone", 390, False)):
        browser.open(address, width, 900, dark)
        browser.until(ROWS + " === 2")
        browser.until("document.querySelector('#chart-waiters path.trace') !== null")
        fits(browser)
        picture(browser, name)
        colour = browser.evaluate("getComputedStyle(document.body).backgroundColor")
        assert dark == (sum(map(int, colour[4:-1].split(","))) < 200), colour
    browser.click("#locks tbody a")
    browser.until(PLACES + " === 'holds,1'")
    fits(browser)
    picture(browser, "phone-queue")


def main():
    browser = Browser(chromium)
    try:
        browser.open(address)
        log_in(browser)
        come_with_the_token(browser)
        read_table(browser)
        sort_and_filter(browser)
        everything_has_a_name(browser)
        many_locks(browser)
        open_by_keys(browser)
        everything_has_a_name(browser)
        take_away(browser)
        go_back(browser)
        look_at_it(browser)
        assert not browser.complaints, browser.complaints
    finally:
        browser.end()
    print("OK")


main()
