"""The report in a headless browser: layout, colours, console, keyboard, screen reader and print."""

import pytest

pytest.importorskip("matplotlib", reason="matplotlib, of the extra plot, is not installed: nothing is drawn")

import browser
import pages
from command import learn

OVERLAPPING = """(() => {
  // texts of a figure, or boxes of a page, that cover each other; parts cut off by a scrollable box do not count
  const found = [];
  const boxes = (elements) => [...elements].map((e) => [e, e.getBoundingClientRect()])
    .filter(([, r]) => r.width > 1 && r.height > 1);
  const cover = (list, what) => {
    for (let i = 0; i < list.length; i++) for (let j = i + 1; j < list.length; j++) {
      const [a, r] = list[i], [b, s] = list[j];
      const x = Math.min(r.right, s.right) - Math.max(r.left, s.left);
      const y = Math.min(r.bottom, s.bottom) - Math.max(r.top, s.top);
      if (x > 1.5 && y > 1.5 && !a.contains(b) && !b.contains(a))
        found.push(`${what}: ${a.textContent.slice(0, 30)} | ${b.textContent.slice(0, 30)}`);
    }
  };
  for (const svg of document.querySelectorAll("svg.figure")) cover(boxes(svg.querySelectorAll("text")), "figure");
  for (const row of document.querySelectorAll("tr")) cover(boxes(row.children), "row");
  cover(boxes(document.querySelectorAll(".tiles > div")), "tiles");
  cover(boxes(document.querySelectorAll("main > *, header > *, footer")), "blocks");
  for (const section of document.querySelectorAll("section, .pair")) cover(boxes(section.children), "section");
  return found;
})()"""
OVERFLOWING = """(() => {
  const found = [];
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width) found.push(`page ${document.documentElement.scrollWidth}`);
  for (const e of document.querySelectorAll("body *")) {
    if (e.closest(".skip") || e.closest("thead")) continue;
    const r = e.getBoundingClientRect();
    if (r.width && (r.right > width + 1 || r.left < -1)) found.push(`${e.tagName} ${e.textContent.slice(0, 40)}`);
    if (e.scrollWidth > e.clientWidth + 1 && e.clientWidth && !e.closest("svg") && !e.matches(".bar"))
      found.push(`in ${e.tagName}.${e.className}: ${e.textContent.slice(0, 40)}`);
  }
  for (const svg of document.querySelectorAll("svg.figure")) {
    const frame = svg.getBoundingClientRect();
    for (const text of svg.querySelectorAll("text")) {
      const r = text.getBoundingClientRect();
      if (r.left < frame.left - 1 || r.right > frame.right + 1 || r.top < frame.top - 1 || r.bottom > frame.bottom + 1)
        found.push(`out of the figure: ${text.textContent}`);
    }
  }
  return found;
})()"""
CONTRASTS = """(() => {
  // WCAG contrast of the text of every kind of element with the colour behind it
  const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const colour = rgb(getComputedStyle(e).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const low = [];
  for (const e of document.querySelectorAll("p, li, th, td, a, code, dt, dd, small, caption, summary, text")) {
    if (!e.textContent.trim()) continue;
    const style = getComputedStyle(e);
    const a = light(rgb(e.tagName === "text" ? style.fill : style.color)), b = light(behind(e));
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) low.push(`${e.tagName} ${contrast.toFixed(2)} ${e.textContent.slice(0, 30)}`);
  }
  return low;
})()"""
OPEN_ALL = "for (const e of document.querySelectorAll('details')) e.open = true"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A report with everything in it, on classes with hostile, rare, similar and unknown names."""
    browser.path_of_browser()
    files = pages.write(tmp_path_factory.mktemp("report"))
    path = files.model.with_suffix(".html")
    learn("report", "-i", files.model, "-d", files.test, "--train", files.train, "-o", path)
    return path


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A browser."""
    with browser.started(tmp_path_factory.mktemp("browser")) as one:
        yield one


@pytest.mark.parametrize("width", [360, 768, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_overlaps_or_overflows_and_the_console_is_silent(report, page, width, scheme):
    page.open(report, width, 900, scheme)
    for script in ("0", OPEN_ALL):
        page.value(script)
        assert page.value(OVERLAPPING) == []
        assert page.value(OVERFLOWING) == []
    assert page.value(CONTRASTS) == []
    assert page.messages() == []
    assert page.requests() == [report.resolve().as_uri()]


def test_the_checks_of_the_layout_find_faults(report, page):
    page.open(report, 1280, 900)
    page.value("document.querySelectorAll('.tiles > div')[1].style.marginLeft = '-60px'")
    assert any("tiles" in text for text in page.value(OVERLAPPING))
    page.value("document.querySelector('h1').style.width = '3000px'")
    assert any("H1" in text for text in page.value(OVERFLOWING))
    page.value("document.querySelector('svg.figure text').style.fontSize = '90px'")
    assert any("figure" in text for text in page.value(OVERFLOWING))
    page.value("document.querySelector('main p').style.color = 'rgb(200, 200, 200)'")
    assert any(text.startswith("P ") for text in page.value(CONTRASTS))
    page.value("console.log('not silent')")
    assert page.messages() == ["['not silent']"]


def test_the_colours_follow_the_scheme(report, page):
    shots = {}
    for scheme in ("light", "dark"):
        page.open(report, 800, 600, scheme)
        shots[scheme] = page.screenshot()
        background = page.value("getComputedStyle(document.body).backgroundColor")
        assert background == {"light": "rgb(255, 255, 255)", "dark": "rgb(18, 23, 29)"}[scheme]
        fill = page.value("getComputedStyle(document.querySelector('#frequency-patch_3 path')).fill")
        assert fill == {"light": "rgb(31, 111, 178)", "dark": "rgb(99, 174, 238)"}[scheme]
    assert shots["light"] != shots["dark"] and all(shot.startswith(b"\x89PNG") for shot in shots.values())


def test_a_link_opens_the_box_of_its_class(report, page):
    page.open(report, 800, 600)
    assert page.value("document.querySelectorAll('details.class[open]').length") == 0
    page.value("document.querySelector('a[href=\"#class-2\"]').click()")
    assert page.value("[...document.querySelectorAll('details.class[open]')].map((e) => e.id)") == ["class-2"]


def test_the_first_tab_leads_past_the_links(report, page):
    page.open(report, 800, 600)
    page.press("Tab", code="Tab", windowsVirtualKeyCode=9)
    assert page.value("document.activeElement.textContent") == "Skip to the report"
    assert page.value("document.activeElement.getBoundingClientRect().left") >= 0
    page.press("Enter", text="\r", code="Enter", windowsVirtualKeyCode=13)
    assert page.value("document.activeElement.id") == "main"
    page.press("Tab", code="Tab", windowsVirtualKeyCode=9)
    assert page.value("document.activeElement.closest('main') !== null")


def test_a_screen_reader_finds_names_of_figures_tables_and_headings(report, page):
    page.open(report, 360, 800)
    nodes = page.call("Accessibility.getFullAXTree")["nodes"]
    named: dict[str, list[str]] = {}
    for node in nodes:
        if not node.get("ignored"):
            named.setdefault(node["role"]["value"], []).append(node.get("name", {}).get("value", ""))
    images = [text for role in ("image", "img", "graphics-document") for text in named.get(role, [])]
    for title in ("Error by class frequency", "Calibration"):
        assert any(text.startswith(title) for text in images), title
    assert all(named["table"]) and len(named["table"]) >= 6
    assert len(named["columnheader"]) > 20  # on a phone, too, where rows are shown as lists
    assert all(text for text in named["heading"] + named["link"])


def test_it_can_be_printed(report, page):
    page.open(report, 800, 600)
    assert page.printed().startswith(b"%PDF")
    page.open(report, 680, 900, "dark", media="print")
    assert page.value("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"  # saves ink
    assert page.value("getComputedStyle(document.querySelector('nav')).display") == "none"
    shown = "[...document.querySelectorAll('details > :not(summary)')].map((e) => e.checkVisibility())"
    assert page.value(shown) and all(page.value(shown))
    assert page.value(OVERFLOWING) == []
    assert page.value(OVERLAPPING) == []
