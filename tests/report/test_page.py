"""report.html, opened in a headless Chromium: what it must show is there, in light and dark, and nothing complains.

TEST_BUILD: the build directory (default build/).  PAGE_SHOTS: a folder to keep screenshots in.
"""
import os
import pathlib
import re
import subprocess

import pytest

import browser
import made_jobs

ROOT = pathlib.Path(__file__).parent.parent.parent
BUILD = pathlib.Path(os.environ.get("TEST_BUILD", ROOT / "build")).absolute()
GOLDEN = ROOT / "tests" / "golden"
MOST_BYTES = 5_000_000


def written(form, snapshot):
    done = subprocess.run([BUILD / "report_of", form, snapshot], capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def page_of(folder, name, snapshot):
    path = folder / (name + ".html")
    path.write_bytes(written("html", snapshot))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return pathlib.Path(os.environ.get("PAGE_SHOTS") or tmp_path_factory.mktemp("pages"))


@pytest.fixture(scope="module")
def pages(folder):
    made = {}
    for name in ("thousand", "memory", "hostile"):
        snapshot = folder / (name + ".txt")
        snapshot.write_text(getattr(made_jobs, name)())
        made[name] = page_of(folder, name, snapshot)
    for name, case in {"hang": "module-skipped/equal_sizes", "stuck": "host-stall/lock", "healthy": "healthy/all_compute"}.items():
        made[name] = page_of(folder, name, GOLDEN / (case + ".txt"))
    return made


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    assert browser.program(), "Chromium is not installed (Debian's package chromium)"
    started = browser.Browser(tmp_path_factory.mktemp("profile"))
    yield started
    started.end()


def shown(chromium, selector):
    """Texts of the elements."""
    return chromium.evaluate(f"[...document.querySelectorAll({selector!r})].map(e => e.textContent)")


def open_page(chromium, path, scheme="light"):
    chromium.open(path, scheme)
    assert chromium.complaints() == []
    assert shown(chromium, "[data-failed]") == []


def test_the_finding_comes_first(chromium, pages):
    open_page(chromium, pages["hang"])
    told = written("json", GOLDEN / "module-skipped" / "equal_sizes.txt").decode()
    summary = re.search(r'"summary": "(.*)"', told)[1]
    assert chromium.evaluate("document.querySelector('main').firstElementChild.querySelector('.summary').textContent") == summary
    first = shown(chromium, "#findings")[0]
    assert "HANG" in first and "module-skipped" in first and "suspected rank 2" in first
    assert len(shown(chromium, "#findings .fix li")) >= 1
    assert shown(chromium, "#contents a") == ["Finding", "Ranks", "Time", "Side by side", "Calls"]


def test_the_odd_call_is_marked(chromium, pages):
    open_page(chromium, pages["hang"])
    assert shown(chromium, "#timeline .bar.is-odd title") != []
    assert all("rank 2" in title for title in shown(chromium, "#timeline .bar.is-odd title"))
    odd = shown(chromium, "#lists td.is-odd")
    assert len(odd) == 1 and "visible here" in shown(chromium, "#lists tr.visible th")[0]
    assert "suspected" in shown(chromium, "#lists thead")[0]
    assert shown(chromium, "#ranks tr.is-suspected th") == ["2\N{NO-BREAK SPACE}(suspected)"]


def test_calls_are_searched(chromium, pages):
    open_page(chromium, pages["hang"])
    rows = len(shown(chromium, "#calls tbody tr"))
    chromium.evaluate("document.activeElement.blur()")
    chromium.press("/", "/")
    assert chromium.evaluate("document.activeElement.id") == "search"
    chromium.evaluate("""new Promise(done => { const s = document.getElementById('search'); s.value = 'rank:2 state:waits';
                         s.dispatchEvent(new Event('input')); setTimeout(done, 300); })""")
    found = shown(chromium, "#calls tbody tr")
    assert len(found) == 1 < rows and found[0].startswith("2world")


def test_the_timeline_is_used_by_keys(chromium, pages):
    open_page(chromium, pages["hang"])
    chromium.evaluate("document.querySelector('#timeline svg').focus()")
    chromium.press("ArrowRight")
    odd = shown(chromium, "#timeline .chosen")[0]
    chromium.press("ArrowLeft")
    before = shown(chromium, "#timeline .chosen")[0]
    chromium.press("ArrowUp")
    above = shown(chromium, "#timeline .chosen")[0]
    assert odd.startswith("rank 2: ") and before.startswith("rank 2: ") and above.startswith("rank 1: ")
    assert len({odd, before, above}) == 3
    assert len(shown(chromium, "#timeline .is-selected")) == 1


def test_a_thousand_ranks_are_a_few_classes(chromium, pages):
    assert pages["thousand"].stat().st_size < MOST_BYTES
    open_page(chromium, pages["thousand"])
    assert shown(chromium, "#ranks tbody th")[0] == "517\N{NO-BREAK SPACE}(suspected)"
    assert sum(map(int, shown(chromium, "#ranks tbody td:nth-child(2)"))) == 1024 and len(shown(chromium, "#ranks tbody tr")) <= 6
    assert shown(chromium, "#timeline svg text.odd")[0].startswith("◆ rank 517")
    assert len(shown(chromium, "#lists thead th")) <= 6
    assert "517" in shown(chromium, "#calls td.suspected")


def test_memory_and_what_made_its_peak(chromium, pages):
    open_page(chromium, pages["memory"])
    first = shown(chromium, "#memory tbody tr")[0]
    assert first.startswith("rank 2") and "above the usual step" in first and "a request of 6.0 GiB failed with 2.0 GiB free" in first
    assert "attention.py:88 forward" in first
    assert len(shown(chromium, "#memory path.curve")) == 8 and len(shown(chromium, "#memory path.failure")) == 1


def test_stacks_are_merged(chromium, pages):
    open_page(chromium, pages["stuck"])
    tree = shown(chromium, "#stacks .tree > li")
    assert any("data.py:7 next_batch" in branch and "rank 1 is here" in branch for branch in tree)
    assert any("rank 0: in its newest call" in branch for branch in tree)


def test_nothing_found_is_said(chromium, pages):
    open_page(chromium, pages["healthy"])
    assert "Nothing was found" in shown(chromium, "#findings")[0]


def test_names_of_the_job_are_no_markup(chromium, pages):
    open_page(chromium, pages["hostile"])
    assert chromium.evaluate("document.title").startswith("dshang: hang")
    assert shown(chromium, "img") == [] and len(shown(chromium, "script")) == 3
    assert any(made_jobs.HOSTILE in text for text in shown(chromium, "#calls tbody td"))
    source = pages["hostile"].read_text()
    assert "</script><script>document" not in source and "<!--" not in source


def test_the_page_holds_no_way_to_make_markup_of_text():
    for path in (ROOT / "core" / "job" / "html").glob("*.js"):
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|srcdoc|https?://(?!www\.w3\.org/2000/svg)",
                             path.read_text()), path.name


@pytest.mark.parametrize("name, scheme", [("hang", "dark"), ("thousand", "light"), ("memory", "dark"), ("memory", "light")])
def test_it_is_drawn_in_light_and_dark(chromium, pages, folder, name, scheme):
    open_page(chromium, pages[name], scheme)
    chromium.screenshot(folder / f"{name}-{scheme}.png")
    background = chromium.evaluate("getComputedStyle(document.body).backgroundColor")
    light = sum(map(int, re.findall(r"\d+", background)[:3])) > 380
    assert light == (scheme == "light"), background
    assert (folder / f"{name}-{scheme}.png").stat().st_size > 20_000
    assert chromium.evaluate("document.documentElement.scrollWidth <= innerWidth")
