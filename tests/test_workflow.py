"""The whole workflow at smoke size, run for real."""

import itertools
import json
import re
import shutil
from urllib.parse import quote

import matplotlib.image
import naive
import networkx as nx
import numpy as np
import pandas as pd
import pytest
import yaml
from browser import BROWSER
from browser import Page as Open
from html_page import Page
from projects import ROOT, copy_project, plans, snakemake

import ictd
from ictd.evaluation import tune_step_size
from ictd.pipeline.grid import cells
from ictd.report.figures.workflow import ARROWS, BOXES
from ictd.report.slider import COLOURS
from ictd.report.verdicts import in_words
from ictd.unseen_tasks import draw_unseen_tasks

SMOKE = {
    **yaml.safe_load((ROOT / "config.yaml").read_text()),
    **yaml.safe_load((ROOT / "tests/smoke.yaml").read_text()),
}
FIGURES = [*(f"figure_{k:02d}" for k in range(1, 11)), "learning"]
FIGURES += ["theorem_1", "lemmas", "theorem_2", "corollary_1", "family", "pretrained"]
BESIDE = ["workflow"]  # Not on the report's page.


def test_everything_is_made_and_nothing_is_left_to_do(smoke):
    results = smoke / "results-smoke"
    assert (results / "report.html").exists()
    again = snakemake(smoke, "--cores", "1", "--dry-run")
    assert "Nothing to be done" in again.stdout + again.stderr


def test_jobs_keep_to_one_thread(smoke):
    files = (smoke / "results-smoke/benchmarks").rglob("*.tsv")
    jobs = pd.concat([pd.read_csv(path, sep="\t").assign(file=path.name) for path in files])
    # The sampler sees nothing of jobs that are over before its first look.
    seen = jobs[jobs["s"] > 1]
    assert len(seen) > 5
    assert (seen["cpu_time"] < 1.2 * seen["s"] + 0.3).all(), seen


def test_tables_have_a_row_for_each_observation(smoke):
    metrics = smoke / "results-smoke/metrics"
    msve = pd.read_csv(metrics / "msve.csv")
    grid = {tuple(cell) for cell in cells(SMOKE)}
    assert set(msve[["algo", "env", "states", "depth"]].itertuples(index=False, name=None)) == grid
    lengths = SMOKE["evaluation"]["context_lengths"]
    assert len(msve) == len(grid) * SMOKE["seeds"] * len(lengths)
    assert not msve.duplicated(["algo", "env", "states", "depth", "seed", "context_length"]).any()
    assert (msve["msve"] > 0).all()
    weights = pd.read_csv(metrics / "weights.csv")
    assert len(weights) == len(grid) * SMOKE["seeds"] and (weights["diverged_at"] == 0).all()
    baselines = pd.read_csv(metrics / "baselines.csv").pivot(
        index=["states", "depth", "seed", "context_length"], columns="method", values="msve"
    )
    np.testing.assert_allclose(baselines["theta_td"], baselines["batch_td"], rtol=1e-9)


def test_a_run_equals_the_library_called_by_hand(smoke):
    states, depth, seed = 4, 6, 2
    tasks = ictd.sample_tasks("loop", states, 300, ictd.generator(seed, "loop", states, "tasks"), threshold=0.5)
    unrolls = ictd.unroll(tasks, 64, 0.9, 200, ictd.generator(seed, "loop", states, "unrolls"))
    start = ictd.initial_weights(states, 0.1, ictd.generator(seed, "loop", states, "weights"))
    weights = ictd.pretrain(tasks, unrolls, "mc", depth, 0.9, 0.001, start.u, start.A)
    with np.load(smoke / "results-smoke/weights/mc-loop-4-6.npz") as stored:
        assert stored["seeds"].tolist() == [0, 1, 2]
        assert stored["A"][seed].tobytes() == weights.A.tobytes()
        assert stored["u"][seed].tobytes() == weights.u.tobytes()
        assert stored["history_A"][seed, -1].tobytes() == weights.A.tobytes()


def test_an_evaluation_equals_the_naive_one(smoke):
    results, states, depth, seed = smoke / "results-smoke", 4, 6, 1
    with np.load(results / "weights/td-loop-4-6.npz") as stored:
        weights = ictd.Weights(stored["u"][seed], stored["A"][seed])
        online, tasks_seen = stored["online_msve"][seed], stored["tasks_seen"]
    tasks = ictd.sample_tasks("boyan", states, 3, ictd.generator(seed, "boyan", states, "validation"))
    paths = ictd.sample_paths(tasks, 20, ictd.generator(seed, "boyan", states, "validation contexts"))
    value = ictd.value_function(tasks.transition, tasks.reward, 0.9)
    step_size = json.loads((results / "baselines/4-6.json").read_text())["step_size"]
    theta = ictd.theta_td(states)
    expected = {name: [] for name in ("model", "theta_td", "lstd", "zero")}
    for i in range(3):
        path, reward = paths[i, :11], tasks.reward[i]
        prompts = [naive.sampled_prompt(path, reward, 0.9, s) for s in range(states)]
        scaled = ictd.Weights(theta.u, step_size * theta.A)
        estimates = {
            "model": [naive.transformer(weights, depth, prompt) for prompt in prompts],
            "theta_td": [naive.transformer(scaled, depth, prompt) for prompt in prompts],
            "lstd": naive.lstd(path, reward, 0.9, 0.01),
            "zero": np.zeros(states),
        }
        for name, estimate in estimates.items():
            expected[name].append((tasks.stationary[i] * (value[i] - np.array(estimate)) ** 2).sum())
    msve = pd.read_csv(results / "metrics/msve.csv").query("seed == @seed and context_length == 10")
    row = msve.query("algo == 'td' and env == 'loop' and states == 4 and depth == 6")
    assert row["msve"].tolist() == [pytest.approx(np.mean(expected["model"]), rel=1e-9)]
    baselines = pd.read_csv(results / "metrics/baselines.csv").query("seed == @seed and context_length == 10")
    for name in ("theta_td", "lstd", "zero"):
        row = baselines.query("method == @name and states == 4 and depth == 6")
        assert row["msve"].tolist() == [pytest.approx(np.mean(expected[name]), rel=1e-9)]
    # The learning curve is the mean error of zero knowledge at first, and covers all tasks.
    trained = ictd.sample_tasks("loop", states, 300, ictd.generator(seed, "loop", states, "tasks"), threshold=0.5)
    unrolls = ictd.unroll(trained, 64, 0.9, 200, ictd.generator(seed, "loop", states, "unrolls"))
    start = ictd.initial_weights(states, 0.1, ictd.generator(seed, "loop", states, "weights"))
    history = ictd.pretrain_history(trained, unrolls, "td", depth, 0.9, 0.001, start.u, start.A)
    truth = ictd.value_function(trained.transition, trained.reward, 0.9)
    error = ictd.msve(trained.stationary, truth, history.estimates)
    bounds = [0, *tasks_seen]
    np.testing.assert_allclose(online, [error[a:b].mean() for a, b in itertools.pairwise(bounds)])


def test_the_step_size_was_tuned_on_other_tasks(smoke):
    tuned = json.loads((smoke / "results-smoke/baselines/4-6.json").read_text())
    data = draw_unseen_tasks(0, 4, 20, 20, 0.9, "boyan", "tuning")
    sizes = np.geomspace(0.5, 4, 4)
    scores = tune_step_size(data, 6, [data.context(length) for length in (5, 10, 20)], sizes)
    assert tuned["step_size"] == sizes[np.argmin(scores)]
    np.testing.assert_allclose(tuned["msve"], scores)


def test_the_truncation_table_has_the_runs_discount(smoke):
    table = pd.read_csv(smoke / "results-smoke/metrics/truncation.csv")
    assert sorted(zip(table["env"], table["states"], strict=True)) == [("boyan", 3), ("boyan", 4), ("loop", 4)]
    assert (table["largest_bias"] / table["typical_value"] < 10 * 0.9**200).all()
    assert (table["largest_bias"] > 0.1 * 0.9**200).all()


def test_figures_show_something(smoke):
    for name in [*FIGURES, *BESIDE]:
        image = matplotlib.image.imread(smoke / f"results-smoke/figures/{name}.png")
        assert min(image.shape[:2]) > 200
        dark = (image[..., :3].min(axis=-1) < 0.5).mean()
        assert 0.002 < dark < 0.5, name
        assert (smoke / f"results-smoke/figures/{name}.svg").read_text().rstrip().endswith("</svg>")


def test_claims_are_decided_and_reported(smoke):
    claims = json.loads((smoke / "results-smoke/claims.json").read_text())
    assert {claim["verdict"] for claim in claims} <= {"holds", "fails"}
    for claim in claims:
        if claim["value"] is not None:
            met = (
                claim["value"] < claim["threshold"] if claim["relation"] == "<" else claim["value"] > claim["threshold"]
            )
            assert met == (claim["verdict"] == "holds")
    listed = [row[0] for row in Page(smoke / "results-smoke/tables/claims_all.html").rows()]
    assert sorted(listed) == sorted(in_words(claim["setting"]) for claim in claims)


def test_report_is_one_page_that_needs_no_network(smoke):
    page = Page(smoke / "results-smoke/report.html")
    sections = ["Summary", "Watch it emerge", "The paper's claims", "Figures", "Theory", "Tables", "How it was made"]
    assert page.headings[1:8] == sections
    assert len(page.images) == len(FIGURES) + 1
    assert all(source.startswith("data:image/png;base64,") for source in page.images)
    assert not page.outside
    for name in FIGURES:
        caption = (ROOT / f"report/captions/{name}.rst").read_text().strip()
        assert caption in page.text


def test_links_of_the_report_lead_somewhere(smoke):
    text = (smoke / "results-smoke/report.html").read_text()
    ids, links = set(re.findall(r"""id=["'](.*?)["']""", text)), set(re.findall(r'href="#(.*?)"', text))
    linked = {*FIGURES} - {"figure_03", "figure_08"} | {"section-Theory", "rows-msve_falls", "rows-lemma_1"}
    for document in ("theory", "readings", "reliability"):
        linked |= {*map(quote, re.findall(r"\]\(#(.*?)\)", (ROOT / f"docs/{document}.md").read_text()))}
    assert links <= {*map(quote, ids), *ids} and linked <= links
    assert "|---|" not in text
    assert all(len(alt) > 20 for alt in re.findall(r'<img[^>]*alt="(.*?)"', text))
    assert text.count("<img") == len(re.findall(r"<img[^>]*alt=", text))


@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium")
def test_the_report_in_a_browser(smoke):
    """A click moves the map of weights; a link into a fold opens it; nothing is wider than a small screen."""
    with Open((smoke / "results-smoke/report.html").as_uri(), 375, 800) as page:
        drawn = "[...document.querySelector('#slider svg').children].map(square => square.outerHTML).join()"
        values = "[...document.querySelectorAll('#slider .value, #slider output')].map(part => part.textContent)"
        still = page.run(drawn), page.run(values)
        page.click("#slider input", 0.02)
        assert page.run("document.querySelector('#slider input').value") == "0"
        moved = page.run(drawn), page.run(values)
        assert moved[0] != still[0] and moved[1][0] == "1" and all(map(str.__ne__, moved[1], still[1]))
        page.click("#slider input", 0.98)
        assert (page.run(drawn), page.run(values)) == still
        assert page.run("document.documentElement.scrollWidth") <= 375
        page.run("location.hash = '#rows-converged'")
        around = "[...document.querySelectorAll('details')].filter(fold => fold.querySelector('#rows-converged'))"
        assert page.run(f"{around}.length") == 2 and page.run(f"{around}.every(fold => fold.open)")
    script = (smoke / "results-smoke/report.html").read_text().replace("<script>", "<script type='none'>")
    (smoke / "still.html").write_text(script)
    with Open((smoke / "still.html").as_uri()) as page:
        assert page.run("document.querySelector('.controls').checkVisibility()") is False
        attributes = "[...document.querySelector('#slider svg').children].map(one => one.getAttribute('fill'))"
        assert set(page.run(attributes)) == set(COLOURS)


def test_pages_are_small_enough_for_frames(smoke):
    """Snakemake's report encodes a page once more, and browsers show no frame beyond 2 MiB."""
    pages = [*(smoke / "results-smoke").glob("*.html"), *(smoke / "results-smoke").glob("*/*.html")]
    sizes = {path.name: path.stat().st_size for path in pages if path.name != "snakemake-report.html"}
    assert len(sizes) > 1 and max(sizes.values()) < 1.5e6, sizes


def test_snakemake_report_holds_figures_tables_and_the_report(smoke):
    target = smoke / "results-smoke/snakemake-report.html"
    done = snakemake(smoke, "--report", str(target))
    assert done.returncode == 0, done.stderr
    text = target.read_text()
    for name in [*FIGURES, *BESIDE, "claims", "settings", "compute", "report"]:
        assert re.search(rf"\b{name}\.(png|html)", text), name


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("discount=1", "Config: discount is 1; give less than 1."),
        ("sedes=3", "Config: there is an unknown key 'sedes'"),
        ("envs=[boyan, ring]", "Config: envs names 'ring'"),
    ],
)
def test_bad_config_stops_before_anything_runs(smoke, change, message):
    done = snakemake(smoke, "--cores", "1", "--dry-run", "--config", change)
    assert done.returncode != 0
    assert message in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_a_single_seed_algo_and_setting_is_enough(smoke, tmp_path):
    folder = copy_project(tmp_path, smoke)
    small = ["algos=[mc]", "envs=[loop]", "states=[2]", "depths=[1]", "seeds=1", "tasks=3", "discount=0", "snapshots=2"]
    done = snakemake(folder, "--cores", "2", "--config", *small)
    assert done.returncode == 0, done.stderr
    page = Page(folder / "results-smoke/report.html")
    assert len(page.images) == 12


def test_as_many_jobs_as_keep_all_cores_busy(tmp_path):
    """In a fresh clone a job for each (algo, env, states, depth, seed) on 150 cores, and for each setting on two."""
    folder = copy_project(tmp_path)
    for cores, jobs in (("150", 280), ("2", 7)):
        ((code, said),) = plans([(folder, ["--quiet", "rules", "--cores", cores])])
        assert code == 0 and re.search(rf"^pretrain +{jobs}$", said, re.MULTILINE), said


def test_a_job_that_was_sent_elsewhere_trains_what_it_was_sent_for(tmp_path):
    """Whatever cores there are: each algorithm has its own job where jobs are sent."""
    one = "pretrain:algo=td,env=boyan,states=4,depth=6,seeds=0-2"
    sent = ["--mode", "remote", "--target-jobs", one, "--quiet", "host", "--configfile", "tests/smoke.yaml"]
    ((code, said),) = plans([(copy_project(tmp_path), sent)])
    assert code == 0 and "output: results-smoke/runs/td-boyan-4-6/0-2.npz\n" in said, said
    assert "benchmark: results-smoke/benchmarks/pretrain/td-boyan-4-6/0-2.tsv\n" in said


def test_whatever_the_manifest_lists_is_before_it_and_made_anew(smoke, tmp_path):
    listed = json.loads((smoke / "results-smoke/manifest.json").read_text())
    listed = {f"results-smoke/{name}" for kind in ("files", "pages") for name in listed[kind]}
    records = [json.loads(path.read_text()) for path in (smoke / ".snakemake/metadata").iterdir()]
    assert listed <= {name for record in records for name in record["input"]}
    # Of a copy, as other tests look at the run meanwhile.
    folder = shutil.copytree(smoke, tmp_path / "edited", symlinks=True)
    for name in ("weights/td-loop-4-6.npz", "figures/figure_05.svg", "tables/msve.html", "baselines/4-6.json"):
        path = folder / "results-smoke" / name
        path.rename(f"{path}.kept")
        ((code, said),) = plans([(folder, ["--configfile", "tests/smoke.yaml"])])
        path.with_name(f"{path.name}.kept").rename(path)
        assert code == 0 and re.search(r"^manifest +1$", said, re.MULTILINE), said


def test_the_picture_of_the_workflow_is_that_of_its_rules(smoke, tmp_path):
    """Each rule has its box, each arrow is a path, and no path between boxes lacks arrows."""
    graph = snakemake(smoke, "--rulegraph").stdout
    names = dict(re.findall(r'^\t(\d+)\[label = "(\w+)"', graph, re.MULTILINE))
    links = {(names[a], names[b]) for a, b in re.findall(r"^\t(\d+) -> (\d+)$", graph, re.MULTILINE)}
    box = {rule: title for title, (*_, rules) in BOXES.items() for rule in rules.split()}
    assert sorted(box) == sorted(names.values())
    drawn, follow = nx.DiGraph(ARROWS), nx.DiGraph((box[a], box[b]) for a, b in links if box[a] != box[b])
    assert nx.transitive_closure(drawn).edges == nx.transitive_closure(follow).edges
    # As many jobs as there are, if each takes one seed.
    ((code, said),) = plans(
        [(copy_project(tmp_path), ["--quiet", "host", "--printshellcmds", "--config", "seeds_per_job=1"])]
    )
    planned = {rule: int(count) for rule, count in re.findall(r"^(\w+) +(\d+)$", said, re.MULTILINE)}
    (counted,) = set(re.findall(r"figures\.workflow --jobs '(.*?)'", said))
    assert code == 0 and planned == json.loads(counted) | {"total": sum(json.loads(counted).values())}
