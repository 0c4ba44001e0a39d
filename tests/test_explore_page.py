"""explore.html: one file that loads nothing, and a browser that clicks through all of it."""

import re
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from chromium import BROWSER, Chromium
from explore import PAGE, PARTS
from html_page import Page
from tolerances import ROUNDING

import ictd
from ictd.steps.report import explore

without_browser = pytest.mark.skipif(BROWSER is None, reason="there is no Chromium")
# A run of a second.
SMALL = {"states": 3, "depth": 5, "tasks": 400, "seeds": 2, "seed": 7}
RESULTS = "view.done && view.tested && view.curves && view.task && !view.testing && !dirty.size"


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("explore") / "explore.html"
    explore.main(PAGE, PARTS, path)
    return path


@contextmanager
def opened(page, folder, width=1280, before="", **settings):
    """The page with some settings, whose console has no errors when it is closed; a script runs before the page."""
    with Chromium(folder, width, 900) as browser:
        browser("Page.addScriptToEvaluateOnNewDocument", source=before)
        browser.open(f"{page.as_uri()}#{'&'.join(f'{name}={value}' for name, value in settings.items())}")
        yield browser
        assert not browser.errors


def change(browser, element, value, event="input"):
    """Give a control a value, as its user does."""
    script = f"element.{'checked' if isinstance(value, bool) else 'value'} = {str(value).lower()!r}"
    if isinstance(value, bool):
        script = f"element.checked = {str(value).lower()}"
    browser.run(
        f"{{ const element = find({element!r}) ?? field({element!r}); {script};"
        f" for (const kind of ['input', 'change']) element.dispatchEvent(new Event(kind, {{bubbles: true}})); }}"
    )


def text(browser, element) -> str:
    return browser.run(f"find({element!r}).textContent")


def press(browser, selector):
    browser.run(f"document.querySelector({selector!r}).click()")


def test_one_file_has_all_parts_and_loads_nothing(page):
    named = re.findall(r"\{\{(.+?)\}\}", PAGE.read_text())
    assert sorted(named) == sorted(part.name for part in PARTS)
    whole = page.read_text()
    assert len(whole.encode()) < 200_000 and "{{" not in whole
    assert whole.count("</script>") == whole.count("<script") and not re.search(r"\b(src|import|fetch)\b *[=(]", whole)
    assert {*Page(page).outside} <= {"report.html", "data:,"}


@pytest.mark.slow
@without_browser
def test_the_page_shows_what_the_engine_computes(page, tmp_path):
    """The worker's numbers on the page are those of the engine in the page."""
    with opened(page, tmp_path, **SMALL) as browser:
        browser.wait(RESULTS)
        wanted = browser.run("""(() => {
          const run = new Run(view.settings);
          while (!advance(run, 1e4));
          const mean = runWeights(run, "mean"), seeds = [0, 1].map(i => runWeights(run, i));
          const options = {...view.settings, format: "steps", index: 0, steps: 20};
          const test = new Test(seeds, view.settings, options);
          while (!advance(test, 1e4));
          const found = measures(mean, 0.9), tasks = unseenTasks(view.settings, 100);
          const shares = ["one", "two", "four", "eight"].map(name => (100 * found[name]).toFixed(1) + "%");
          const halves = [tasks.slice(0, 50), tasks.slice(50)];
          const msve = depth => meanOf(halves.flatMap((half, i) => enumeratedMsve(seeds[i], half, depth, 0.9)));
          return {
            numbers: [shown(found.alpha), shown(found.beta), ...shares, shown(msve(5))],
            A: [...mean.A], identifiable: [...identifiable(mean, 0.9).A],
            legend: Object.keys(NAMES).map(name => NAMES[name] + ": " + shown(test.result[name].at(-1))),
            deep: msve(75),
            task: oneTask(seeds[0], view.settings, options),
          };
        })()""")
        for number in wanted["numbers"]:
            assert number in text(browser, "numbers")
        for name, entries in (("", wanted["A"]), ("identifiable", wanted["identifiable"])):
            if name:
                change(browser, name, True)
            browser.wait("!dirty.size")
            assert drawn_map(browser, 3) == pytest.approx(np.array(entries) / np.abs(entries).max(), abs=0.005)
        legend = browser.run("PLOTS.steps.textContent")
        assert all(entry in legend for entry in wanted["legend"])
        deep = browser.run("view.curves.depth.find(each => each.x === 75).transformer")
        assert deep == pytest.approx(wanted["deep"], rel=ROUNDING)
        label = browser.run("PLOTS.chain.firstChild.getAttribute('aria-label')")
        assert browser.run(f"shown({wanted['task']['error']})") in label


def drawn_map(browser, n: int) -> np.ndarray:
    """Entries of the map of A by its squares, relative to the largest."""
    squares = browser.run("""[...PLOTS.A.querySelectorAll("rect[fill-opacity]")].map(square =>
        ["x", "y", "fill", "fill-opacity"].map(name => square.getAttribute(name)))""")
    entries, cell = np.zeros(4 * n * n), 200 / (2 * n)
    for x, y, fill, strength in squares:
        sign = 1 if fill == "var(--plus)" else -1
        entries[round(float(y) / cell) * 2 * n + round(float(x) / cell)] = sign * float(strength)
    return entries


@pytest.mark.slow
@without_browser
def test_all_controls_of_the_page(page, tmp_path):
    with opened(page, tmp_path, **SMALL) as browser:
        browser.wait(RESULTS)
        press(browser, "#cells button[data-cell='2']")
        cell = browser.run("CELLS[2]")
        assert browser.run("view.settings") == cell and f"depth={cell['depth']}" in browser.run("location.hash")
        assert browser.run("document.querySelector('#cells [aria-pressed=true]').dataset.cell") == "2"
        for name, value in SMALL.items():
            change(browser, name, value)
        change(browser, "environment", "boyan")
        change(browser, "target", "mc")
        press(browser, "#start")
        browser.wait(RESULTS)
        assert browser.run("view.settings.target") == "mc" and "2 seeds of 400 tasks" in text(browser, "status")
        first = browser.run("view.tested.transformer")
        for name, value in {
            "test-relabelled": True, "test-environment": "loop", "test-format": "grouped", "test-depth": 40,
            "test-discount": 0.8,
        }.items():  # fmt: skip
            before = browser.run("view.request")
            change(browser, name, value)
            browser.wait(f"view.request > {before} && {RESULTS}")
            last = browser.run("view.tested.transformer")
            assert last != first, name
            first = last
        assert "With 40 layers the error is" in text(browser, "border")
        for element, value, figure in (
            ("task-steps", 100, "chain"), ("time", 20, "shares"), ("chosen", 1, "A"),
        ):  # fmt: skip
            before = browser.run(f"PLOTS[{figure!r}].innerHTML")
            change(browser, element, value)
            browser.wait(f"PLOTS[{figure!r}].innerHTML !== {before!r}")
        browser.wait(RESULTS)
        before = browser.run("PLOTS.chain.innerHTML")
        press(browser, "#another")
        browser.wait(f"PLOTS.chain.innerHTML !== {before!r}")


@pytest.mark.slow
@without_browser
def test_pause_and_the_link(page, tmp_path):
    with opened(page, tmp_path, **SMALL | {"tasks": 200_000}) as browser:
        browser.wait("view.points.length > 3 && !dirty.size")
        assert "After pretraining" in browser.run("PLOTS.steps.textContent")
        press(browser, "#pause")
        browser.wait("view.tested && view.curves")
        seen = browser.run("view.points.at(-1).seen")
        assert 0 < seen < 200_000 and "paused" in text(browser, "status")
        press(browser, "#pause")
        browser.wait(f"view.points.at(-1).seen > {seen}")
        # Another address in the same page, as if pasted.
        browser.run("location.hash = addressOf({...DEFAULT_SETTINGS, states: 4, depth: 2, tasks: 50, seeds: 1})")
        browser.wait(RESULTS)
        assert browser.run("view.settings.states") == 4 and "1 seed of 50 tasks" in text(browser, "status")


@pytest.mark.slow
@without_browser
def test_files_of_the_page(page, tmp_path, monkeypatch):
    with opened(page, tmp_path, **SMALL) as browser:
        browser.wait(RESULTS)
        press(browser, "#weights")
        for figure in browser.run("Object.keys(FIGURES)"):
            press(browser, f"figure[data-figure={figure}] .save")
        browser.wait("find('status').textContent.includes('chain.svg is saved')")
        wanted = browser.run("view.points.at(-1).weights.A.reduce((sum, entry) => sum + entry, 0)")
        figures = browser.run("Object.keys(FIGURES).length")
        for _ in range(100):
            if len([*tmp_path.glob("*.svg"), *tmp_path.glob("*.npz")]) == figures + 1:
                break
            browser.run("new Promise(done => setTimeout(done, 50))")
        code = text(browser, "python")
    monkeypatch.chdir(tmp_path)
    exec(code, {"states": [0, 1, 2], "rewards": [1, 0]})
    model = ictd.load_model(tmp_path / "td-boyan-3-5.npz")
    assert model.weights.A.shape == (2, 6, 6) and model.depth == 5
    assert model.weights.A.mean(axis=0).sum() == pytest.approx(wanted)
    drawings = [*tmp_path.glob("*.svg")]
    assert len(drawings) == figures
    for path in drawings:
        assert "var(" not in path.read_text() and ElementTree.parse(path).getroot().tag.endswith("svg")


@pytest.mark.slow
@without_browser
def test_bad_settings_say_what_is_wrong(page, tmp_path):
    with opened(page, tmp_path, width=390, **SMALL | {"tasks": "many"}) as browser:
        assert browser.run("find('errors').checkVisibility()")
        assert "tasks is not a number; give a whole number" in text(browser, "errors")
        assert browser.run("find('start').disabled && !view.number")
        change(browser, "tasks", SMALL["tasks"])
        press(browser, "#start")
        browser.wait(RESULTS)
        assert browser.run("find('errors').hidden")


@pytest.mark.slow
@without_browser
def test_a_run_that_diverges(page, tmp_path):
    """Rewards make gradients infinite."""
    broken = tmp_path / "explore.html"
    broken.write_text(page.read_text().replace("2 * random.uniform() - 1", "1e200"))
    with opened(broken, tmp_path, **SMALL) as browser:
        browser.wait("view.done && !dirty.size")
        said = r"^Seed 7 and 1 other seed diverged \(at task \d+ .*; no seed is left"
        assert re.search(said, text(browser, "status")) and "the weights are not finite" in text(browser, "numbers")
        press(browser, "#weights")
        assert "there is no file" in text(browser, "status") and browser.run("find('message').hidden")
        assert "No seed has finite weights" in browser.run("PLOTS.steps.textContent")


@pytest.mark.slow
@without_browser
@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("advance(this.job", "advance(nowhere", "stopped: Uncaught ReferenceError: nowhere is not defined."),
        (
            "<style>",
            """<meta http-equiv="Content-Security-Policy" content="worker-src 'none'"><style>""",
            "stopped: the browser starts no worker.",
        ),
    ],
)
def test_a_page_that_cannot_compute_says_why(page, tmp_path, old, new, sentence):
    broken = tmp_path / "explore.html"
    broken.write_text(page.read_text().replace(old, new))
    with Chromium(tmp_path, 1280, 900) as browser:
        browser.open(broken.as_uri())
        browser.wait("!find('message').hidden && view.done")
        assert sentence in text(browser, "message")


@pytest.mark.slow
@without_browser
def test_the_tour(page, tmp_path):
    """Each step shows what its sentence says."""
    with opened(page, tmp_path, **SMALL) as browser:
        browser.wait(RESULTS)
        for step in range(6):
            before = browser.run("view.request")
            press(browser, f"#story li:nth-child({step + 1}) button")
            browser.wait(f"view.request > {before} && {RESULTS}", 300)
            last = browser.run("view.points.at(-1)")
            if step == 0:
                assert last["measures"]["one"] > 0.5
            if step == 2:
                assert last["other"] > 10 * last["error"]
            if step == 3:
                assert last["measures"]["two"] > 0.95 and last["other"] < 2 * last["error"]
        assert browser.run("view.steps") == 20 and text(browser, "tour").endswith("End the tour")
        # The sentence does not stay beside another run.
        press(browser, "#cells button")
        assert browser.run("find('tour').hidden && !document.querySelector('#story [aria-current]')")


@pytest.mark.slow
@without_browser
def test_names_and_widths(page, tmp_path):
    """All controls and figures have names, texts say the present numbers, and nothing is wider than a phone."""
    with opened(page, tmp_path, width=390, **SMALL) as browser:
        browser.wait(RESULTS)
        unnamed = browser.run("""
            [...document.querySelectorAll(":is(button, input, select, textarea, svg):not([hidden] *)")].filter(one => {
                const labels = [...one.labels ?? []].map(label => label.textContent).join("");
                return !(one.getAttribute("aria-label") ?? labels) && !one.textContent.trim();
            }).map(one => one.outerHTML.slice(0, 80))""")
        assert unnamed == [] and browser.run("document.documentElement.scrollWidth") == 390
        assert browser.run("shown(view.tested.transformer.at(-1))") in text(browser, "spoken")
        # The keyboard reaches the controls in their order.
        for _ in range(3):
            for kind in ("keyDown", "keyUp"):
                browser("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
        assert browser.run("document.activeElement.textContent") == browser.run("STORY[1].button")
        # Enter in a field starts a run.
        press(browser, "#choose summary")
        browser.run("field('depth').focus()")
        for key, code in (("ArrowRight", 39), ("Enter", 13)):
            given = {"text": "\r"} if key == "Enter" else {}
            browser("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **given)
        browser.wait("view.number === 2 && view.settings.depth === 6")
