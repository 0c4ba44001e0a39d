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
COVERED = "Array.from(document.querySelectorAll('.covered'), (place) => place.dataset.figure ?? place.id).join()"
RESULTS = "view.done && view.tested && view.curves && !view.testing && !dirty.size"


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
          const test = new Test(seeds, view.settings, {...view.settings, format: "steps"});
          while (!advance(test, 1e4));
          const found = measures(mean, 0.9), tasks = unseenTasks(view.settings, 100);
          const shares = ["one", "two", "eight"].map(name => (100 * found[name]).toFixed(1) + "%");
          const halves = [tasks.slice(0, 50), tasks.slice(50)];
          const msve = depth => meanOf(halves.flatMap((half, i) => enumeratedMsve(seeds[i], half, depth, 0.9)));
          return {
            numbers: [shown(found.alpha), shown(found.beta), ...shares, shown(msve(5))],
            A: [...mean.A], identifiable: [...identifiable(mean, 0.9).A],
            legend: Object.keys(NAMES).map(name => NAMES[name] + ": " + shown(test.result[name].at(-1))),
            deep: msve(75),
            estimates: [mean, thetaTd(3, 3)].map(weights => {
              const [task] = unseenTasks(view.settings, 1, "task 0");
              return transformerEstimate(weights, contextOfStates(task.transition, task.reward), 4, 0.9);
            }).map(found => shown(found[2])),
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
        deep = browser.run("view.curves.find(each => each.x === 75).transformer")
        assert deep == pytest.approx(wanted["deep"], rel=ROUNDING)
        change(browser, "trace-layer", 4)
        browser.wait("!dirty.size")
        label = browser.run("PLOTS.chain.firstChild.getAttribute('aria-label')")
        assert "pretrained {}, θᵀᴰ {}.".format(*wanted["estimates"]) in label


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
        }.items():  # fmt: skip
            before = browser.run("view.request")
            change(browser, name, value)
            browser.wait(f"view.request > {before} && {RESULTS}")
            last = browser.run("view.tested.transformer")
            assert last != first, name
            first = last
        for element, value, figure in (
            ("trace-steps", 20, "prompt"), ("trace-rewards", "ones", "chain"), ("trace-layer", 3, "chain"),
            ("time", 20, "shares"), ("chosen", 1, "A"),
        ):  # fmt: skip
            before = browser.run(f"PLOTS[{figure!r}].innerHTML")
            change(browser, element, value)
            browser.wait(f"PLOTS[{figure!r}].innerHTML !== {before!r}")
        browser.wait(RESULTS)
        before = browser.run("PLOTS.chain.innerHTML")
        press(browser, "#another")
        browser.wait(f"PLOTS.chain.innerHTML !== {before!r}")
        press(browser, "#play")
        browser.wait("view.layer === 5 && !playing")
        # Results of other settings than those of the form are marked.
        assert not browser.run("document.querySelector('.stale') || find('start').checkVisibility()")
        change(browser, "depth", 6)
        assert browser.run("find('views').classList.contains('stale') && find('start').checkVisibility()")
        rows = browser.run("Array.from(find('runs').tBodies[0].rows, row => row.cells[1].textContent)")
        assert [", MC, " in row for row in rows] == [False, True] and "400 tasks" in rows[1]


@pytest.mark.slow
@without_browser
def test_values_at_the_pointer_and_the_arrow_keys(page, tmp_path):
    with opened(page, tmp_path, **SMALL) as browser:
        browser.wait(RESULTS)
        # The button of a cover uncovers what its step asks about.
        press(browser, "figure[data-figure=steps] .cover")
        browser.wait(f"{COVERED} === 'A,shares,sizes,numbers,depths,ones'")
        # At the left end of the plot, with 5 steps; and the keys lead to 10.
        left, top, width = browser.run("""(() => {
          PLOTS.steps.scrollIntoView();
          const {left, top, width} = PLOTS.steps.firstChild.getBoundingClientRect();
          return [left, top, width];
        })()""")
        browser("Input.dispatchMouseEvent", type="mouseMoved", x=left + width * 76 / 360, y=top + 100)
        value = "`pretrained: ${shown(view.tested.transformer[LENGTHS.indexOf(%d)])}`"
        read = "Array.from(PLOTS.steps.querySelectorAll('.read'), each => each.textContent).join()"
        browser.wait(f"{read}.includes('5 steps') && {read}.includes({value % 5})")
        browser.run("PLOTS.steps.focus()")
        browser("Input.dispatchKeyEvent", type="keyDown", key="ArrowRight", windowsVirtualKeyCode=39)
        browser.wait(f"find('spoken').textContent.includes({value % 10})")
        # Beyond the end of an axis there is no number that its line could show.
        assert browser.run("[told(1e9, MSVE), told(1e3, MSVE)]") == ["> 10,000 ↑", "1,000"]
        for figure, words in (("A", "row 1, column 1: "), ("chain", "state 1: true "), ("prompt", "column 1, state 1")):
            browser.run(f"probe('{figure}', {{x: 0, y: 0}})")
            browser.wait(f"PLOTS.{figure}.textContent.includes('{words}')")


@pytest.mark.slow
@without_browser
def test_pause_and_the_link(page, tmp_path):
    with opened(page, tmp_path, **SMALL | {"tasks": 200_000}) as browser:
        browser.wait("view.points.length > 3 && PLOTS.steps.textContent.includes('After pretraining')")
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
        # The browser saves ten files at once; the map of theta^TD is drawn as that of A.
        figures = browser.run("Object.keys(FIGURES).filter(name => name !== 'theta')")
        for figure in figures:
            press(browser, f"figure[data-figure={figure}] .save")
        browser.wait("find('status').textContent.includes('ones.svg is saved')")
        wanted = browser.run("view.points.at(-1).weights.A.reduce((sum, entry) => sum + entry, 0)")
        for _ in range(100):
            if len([*tmp_path.glob("*.svg"), *tmp_path.glob("*.npz")]) == len(figures) + 1:
                break
            browser.run("new Promise(done => setTimeout(done, 50))")
        code = text(browser, "python")
    monkeypatch.chdir(tmp_path)
    exec(code, {"states": [0, 1, 2], "rewards": [1, 0]})
    model = ictd.load_model(tmp_path / "td-boyan-3-5.npz")
    assert model.weights.A.shape == (2, 6, 6) and model.depth == 5
    assert model.weights.A.mean(axis=0).sum() == pytest.approx(wanted)
    drawings = [*tmp_path.glob("*.svg")]
    assert len(drawings) == len(figures)
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
def test_the_lesson(page, tmp_path):
    """Each try shows what the answer of its step says."""
    with opened(page, tmp_path, **SMALL) as browser:
        browser.wait(RESULTS)
        assert text(browser, "lesson") == "Lesson: step 1 of 7"
        found = {}
        # What a figure would tell of this or a later answer is covered until the try of that step.
        asked = {1: "A,shares,sizes,numbers", 5: "steps", 6: "depths,ones"}

        def covered(first):
            return ",".join(names for step, names in asked.items() if step >= first)

        for step, tries in enumerate(browser.run("STEPS.map(({tries}) => tries.length)")):
            press(browser, "#lesson" if step == 0 else ".card[open] .next")
            assert browser.run("CARDS.map(card => card.open).indexOf(true)") == step
            browser.wait(f"{COVERED} === {covered(step)!r}")
            for i in range(tries):
                before = browser.run("view.request")
                browser.run(f"document.querySelectorAll('.card[open] .try')[{i}].click()")
                browser.wait(f"view.request > {before} && !view.queue.length && {RESULTS}", 300)
                assert browser.run(COVERED) == covered(step + 1)
                found[step, i] = browser.run("({...view.points.at(-1), tested: view.tested, curves: view.curves[0]})")
            if step == 0:
                change(browser, "trace-layer", 1)
                browser.wait("!dirty.size")
                label = browser.run("PLOTS.chain.firstChild.getAttribute('aria-label')")
                assert [part.split("θᵀᴰ ")[1] for part in label.split("; ")] == ["0", "0", "0", "0", "1."]
            if step == 2:
                assert "θᵀᴰ: " in browser.run("PLOTS.error.textContent")
            assert ("times as much" in text(browser, "numbers")) == browser.run("view.settings.relabelled")
            press(browser, ".card[open] .answer summary")
            browser.wait(f"notes.done.length === {step + 1}")
        rows = browser.run("Array.from(find('runs').rows, row => Array.from(row.cells, cell => cell.textContent))")
    assert found[1, 0]["measures"]["two"] > found[1, 0]["measures"]["one"] > 0.5
    assert found[2, 0]["other"] > 10 * found[2, 0]["error"]
    before, after = (found[step, 0]["curves"]["theta_td"] for step in (1, 2))
    assert before / 2 < after < 2 * before
    assert found[3, 0]["measures"]["two"] > 0.95 and found[3, 0]["measures"]["eight"] > 0.99
    pools = {row[0]: float(row[-1]) for row in rows if row[1] == "–"}
    errors = [pools[different] for different in ("1", "4", "16", "64", "256", "all")]
    assert errors[1] > 10 * errors[3] and errors[4] < 2 * errors[5] and errors == sorted(errors, reverse=True)
    steps, grouped = (found[5, i]["tested"] for i in range(2))
    assert steps["transformer"][-1] > 10 * steps["lstd"][-1] and grouped["transformer"][-1] < 2 * grouped["lstd"][-1]
    last, deep = found[6, 0], found[6, 0]["curves"]
    assert deep["transformer"] / 2 < last["tested"]["transformer"][-1] < 2 * deep["transformer"]
    assert deep["x"] == 60 and deep["transformer"] > 10 * last["error"] > 10 * deep["theta_td"]
    assert last["measures"]["constantFactor"] > 1


@pytest.mark.slow
@without_browser
def test_answers_are_kept_and_saved(page, tmp_path):
    with opened(page, tmp_path, **SMALL) as browser:
        browser.wait(RESULTS)
        write = "area = document.querySelector('[data-note=\"1 because\"]'); area.value = 'deflation'"
        browser.run(f"{write}; area.dispatchEvent(new Event('input')); CARDS[0].querySelector('.answer').open = true")
        browser.wait("notes.done.length === 1")
        browser("Page.reload")
        browser.wait(f"document.readyState === 'complete' && {RESULTS}")
        assert browser.run("document.querySelector('[data-note=\"1 because\"]').value") == "deflation"
        assert browser.run("CARDS[0].matches('.done') && CARDS[1].open") and "step 2 of 7" in text(browser, "lesson")
        press(browser, "#answers")
        for _ in range(100):
            if (tmp_path / "lesson.txt").exists():
                break
            browser.run("new Promise(done => setTimeout(done, 50))")
        saved = (tmp_path / "lesson.txt").read_text()
        assert "> deflation" in saved and "all\t3 states, 5 layers, 400 tasks, 2 seeds, first seed 7" in saved
        browser.run("window.confirm = () => true")
        press(browser, "#forget")
        browser.wait("typeof notes === 'object' && !notes.done.length")
        assert (
            browser.run("notes") == {"done": [], "tried": []} == browser.run("JSON.parse(localStorage.getItem(STORE))")
        )


@pytest.mark.slow
@without_browser
def test_names_and_widths(page, tmp_path):
    """All controls and figures have names, texts say the present numbers, and nothing is wider than a phone."""
    with opened(page, tmp_path, width=390, **SMALL) as browser:
        browser.wait(RESULTS)
        unnamed = browser.run("""
            [...document.querySelectorAll("button, input, select, textarea, svg[role]")].filter(one => {
                const labels = [...one.labels ?? []].map(label => label.textContent).join("");
                return !(one.getAttribute("aria-label") ?? labels) && !one.textContent.trim();
            }).map(one => one.outerHTML.slice(0, 80))""")
        assert browser.run(COVERED) == ""
        assert unnamed == [] and browser.run("document.documentElement.scrollWidth") == 390
        assert browser.run("shown(view.tested.transformer.at(-1))") in text(browser, "spoken")
        # Enter in a field starts a run.
        press(browser, "#choose summary")
        browser.run("field('depth').focus()")
        for key, code in (("ArrowRight", 39), ("Enter", 13)):
            given = {"text": "\r"} if key == "Enter" else {}
            browser("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **given)
        browser.wait("view.number === 2 && view.settings.depth === 6")
