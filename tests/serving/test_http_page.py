"""The page of a server in a headless browser: predicting, reasons, learning, colours, keyboard and screen reader."""

import threading
import time

import pytest

pytest.importorskip("httptools", reason="httptools, of the extra serve, is not installed: there is no HTTP")
pytest.importorskip("prometheus_client", reason="prometheus-client, of the extra serve, is not installed")

import browser
from servers import asked, served
from test_http import LINES, new_learner, waiting

import xclass

TYPE = "document.getElementById('example').value = {!r}; document.getElementById('ask').requestSubmit()"
NARROW = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
COLOURS = {"light": "rgb(255, 255, 255)", "dark": "rgb(18, 23, 29)"}


class Address:
    """An address where `browser.Browser.open` expects a path."""

    def __init__(self, port):
        self.text = f"http://127.0.0.1:{port}/"

    def resolve(self):
        return self

    def as_uri(self):
        return self.text


@pytest.fixture(scope="module")
def server():
    browser.path_of_browser()
    with served(new_learner(), {"http": "0"}) as running:
        running.http = running.server.http.port
        yield running


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    with browser.started(tmp_path_factory.mktemp("browser")) as one:
        yield one


def wait(page, script):
    """Wait until a JavaScript expression is true."""
    deadline = time.monotonic() + 30
    while not page.value(script):
        assert time.monotonic() < deadline, page.value("document.body.innerText")
        time.sleep(0.02)


def opened(page, server, width=900, scheme="light"):
    page.open(Address(server.http), width, 900, scheme)
    wait(page, "document.querySelectorAll('#live div').length === 6")


def predicted(page, text):
    page.value("document.getElementById('reasons').replaceChildren()")
    page.value(TYPE.format(text))
    wait(page, "document.querySelectorAll('#reasons section').length === 2")


@pytest.mark.parametrize("example", ["free money", "| free money", '{"free": 1, "money": 1}'])
def test_an_example_is_predicted_and_explained(server, page, example):
    opened(page, server)
    predicted(page, example)
    assert page.value("document.querySelector('#top tbody th').textContent") == "spam"
    widths = page.value("[...document.querySelectorAll('#top .bar span')].map((e) => parseFloat(e.style.width))")
    assert len(widths) == 3 and widths == sorted(widths, reverse=True)
    assert page.value("document.querySelector('#reasons h3').textContent") == "Why spam?"
    shares = page.value("[...document.querySelectorAll('#reasons section')][0].innerText")
    assert "free" in shares and "money" in shares
    assert page.messages() == []
    assert {url.rpartition("/")[0] for url in page.requests()} <= {
        f"http://127.0.0.1:{server.http}", f"http://127.0.0.1:{server.http}/v1",
        f"http://127.0.0.1:{server.http}/v1/model",
    }  # fmt: skip


def test_a_feature_has_one_row_and_the_rest_comes_last(page):
    learner = xclass.Learner("multiclass", bits=12)
    words = [f"word{i}" for i in range(30)]
    learner.learn_many([f"| free money {' '.join(words)}", "| room offer"] * 20, ["spam", "work"] * 20)
    with served(learner, {"http": "0"}) as running:
        running.http = running.server.http.port
        opened(page, running)
        predicted(page, f"free money {' '.join(words)}")
        rows = "[...document.querySelector('#reasons tbody').rows].map((r) => r.firstChild.innerText)"
        names = page.value(rows)
        assert names[-1] == "(rest: 22 features)" and "(trees)" in names[10:-1]
        assert len({*names}) == len(names) and {*names[:10]} <= {"free", "money", *words}
        bars = "[...document.querySelector('#reasons tbody').rows].map((r) => r.querySelectorAll('.bar').length)"
        assert page.value(bars) == [1] * (len(names) - 1) + [0]
        page.value("document.getElementById('with-parts').click()")
        assert " = index " in page.value(rows)[0]


def test_text_of_data_is_shown_as_text(page):
    learner = new_learner()
    name = "<img/src=x/onerror=document.title='bad'>"
    learner.learn_many(["| a"] * 3, [name] * 3)
    with served(learner, {"http": "0"}) as running:
        running.http = running.server.http.port
        opened(page, running)
        predicted(page, "a <b>bold</b>")
        assert page.value("document.querySelector('#top tbody th').textContent") == name
        assert page.value("document.querySelectorAll('main img, main b').length") == 0
        assert page.value("document.title") == "xclass"


def test_what_is_wrong_is_told(server, page):
    opened(page, server)
    for example, message in (("{oops", "is no JSON"), ("", "Type an example first."), ('{"a": [1]}', "value [1]")):
        page.value(TYPE.format(example))
        wait(page, f"document.getElementById('message').textContent.includes({message!r})")
    assert page.value("document.getElementById('message').getAttribute('role')") == "alert"


def test_a_learner_without_probabilities_predicts(page):
    learner = xclass.Learner("scalar", bits=10)
    learner.learn_many(["2 | a"] * 50)
    with served(learner, {"http": "0"}) as running:
        running.http = running.server.http.port
        opened(page, running)
        page.value(TYPE.format("a"))
        wait(page, "document.getElementById('reasons').childElementCount > 0")
        assert page.value("parseFloat(document.getElementById('verdict').textContent)") == pytest.approx(2, abs=0.3)
        assert page.value("document.getElementById('top').hidden")
        assert page.value("document.getElementById('message').textContent") == ""


def test_a_key_asks_once_while_an_answer_is_awaited(server, page):
    opened(page, server)
    gate = threading.Event()
    server.server._loop.call_soon_threadsafe(server.service.ask, waiting(gate))
    before = sum(url.endswith("/predict") for url in page.requests())
    page.value("document.getElementById('reasons').replaceChildren()")
    page.value("document.getElementById('example').value = 'free'; document.getElementById('example').focus()")
    for _ in range(3):
        page.press("Enter", text="\r", code="Enter", windowsVirtualKeyCode=13, modifiers=2)
    gate.set()
    wait(page, "document.querySelectorAll('#reasons section').length === 2")
    assert sum(url.endswith("/predict") for url in page.requests()) == before + 1


def test_an_example_is_learned_and_the_figures_follow(page):
    with served(new_learner(), {"http": "0"}) as running:
        running.http = running.server.http.port
        opened(page, running)
        predicted(page, "free")
        page.value("document.getElementById('label').value = 'home'")
        page.value("document.getElementById('teach').requestSubmit()")
        wait(page, f"document.querySelector('#live dd').textContent === '{len(LINES) + 1}'")
        assert page.value("document.getElementById('learned').textContent") == "Learned as home."
        asked(running.http, "POST", "/v1/learn", {"lines": ["work | room"] * 5})  # somebody else's
        wait(page, f"document.querySelector('#live dd').textContent === '{len(LINES) + 6}'")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_colours_and_widths(server, page, width, scheme):
    opened(page, server, width, scheme)
    predicted(page, "free " + "long" * 60)
    assert page.value("getComputedStyle(document.body).backgroundColor") == COLOURS[scheme]
    assert page.value(NARROW)
    assert page.messages() == []


def test_keyboard_and_screen_reader(server, page):
    opened(page, server)
    page.press("Tab", code="Tab", windowsVirtualKeyCode=9)
    assert page.value("document.activeElement.textContent") == "Skip to the example"
    page.value("document.getElementById('example').focus()")
    page.call("Input.insertText", text="free money")
    page.press("Enter", text="\r", code="Enter", windowsVirtualKeyCode=13, modifiers=2)
    wait(page, "document.querySelectorAll('#reasons section').length === 2")
    wait(page, "document.activeElement.id === 'answer-title'")
    named: dict[str, list[str]] = {}
    for node in page.call("Accessibility.getFullAXTree")["nodes"]:
        if not node.get("ignored"):
            named.setdefault(node["role"]["value"], []).append(node.get("name", {}).get("value", ""))
    for role in ("textbox", "button", "heading", "table", "columnheader", "rowheader"):
        assert named[role] and all(named[role]), role


def test_the_page_forbids_what_it_does_not_use(server):
    for path in ("/", "/page.js", "/page.css"):
        status, headers, content = asked(server.http, "GET", path)
        assert status == 200 and b"http://" not in content and b"https://" not in content
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'") and "unsafe" not in policy
    assert b"style=" not in asked(server.http, "GET", "/")[2]
