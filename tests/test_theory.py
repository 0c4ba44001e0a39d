"""The theory's checks: what they compute, and that they notice what is wrong."""

import naive_theory as naive
import numpy as np
import pandas as pd
import pytest
from test_engines import SETTINGS, larger_weights
from tolerances import ENGINES, ROUNDING

import ictd
from ictd import html
from ictd.frames import load_table
from ictd.fused import value_gradients
from ictd.theory import statements
from ictd.theory.agreement import by_appendix, by_autograd, largest_difference
from ictd.theory.claims import check_theory
from ictd.theory.embeddings import embeddings, gradients
from ictd.theory.neu import GROUPS, expected_updates, neu
from ictd.theory.precision import exact_tails, exact_update


def tasks_of(env, states, size=2):
    return ictd.sample_tasks(env, states, size, ictd.generator(3, env, states, "tasks"))


@pytest.mark.parametrize(("env", "states", "depth", "discount"), SETTINGS)
def test_embeddings_are_those_of_whole_prompts(env, states, depth, discount):
    tasks = tasks_of(env, states)
    for weights in (ictd.theta_td(states), larger_weights(states)):
        rows = embeddings(weights, tasks, discount, depth)
        for task in range(2):
            for q in range(states):
                case = weights, tasks.transition[task], tasks.reward[task], discount, depth, q
                bottom = np.array([Z[-1] for Z in naive.embeddings(*case)])
                scale = np.abs(bottom).max(axis=0)
                np.testing.assert_array_less(np.abs(rows.Y[task] - bottom[:, :-1]), ROUNDING * (1 + scale[:-1].max()))
                np.testing.assert_array_less(np.abs(rows.y[task, :, q] - bottom[:, -1]), ROUNDING * (1 + scale[-1]))


@pytest.mark.parametrize(("env", "states", "depth", "discount"), SETTINGS)
def test_gradients_follow_the_appendix(env, states, depth, discount):
    depth = min(depth, 8)
    tasks = tasks_of(env, states)
    for weights in (ictd.theta_td(states), larger_weights(states)):
        *_, last = gradients(embeddings(weights, tasks, discount, depth))
        found = last.context_A(), last.query_A(), last.U.mT, last.V.mT
        for task in range(2):
            expected = naive.gradients(weights, tasks.transition[task], tasks.reward[task], discount, depth)
            for part, whole in zip(found, expected, strict=True):
                assert np.abs(part[task] - whole).max() <= ROUNDING * max(1, np.abs(whole).max())


@pytest.mark.parametrize(("env", "states", "depth", "discount"), SETTINGS)
def test_gradients_agree_with_torch(env, states, depth, discount):
    tasks = tasks_of(env, states)
    for weights in (ictd.theta_td(states), larger_weights(states)):
        case = (weights, tasks, 1, discount, depth)
        reference = by_autograd(*case)
        assert np.abs(reference).max() > 0.1
        assert largest_difference(value_gradients(*case), reference) < ENGINES
        assert largest_difference(by_appendix(*case), reference) < ENGINES


@pytest.mark.parametrize("algo", ["td", "mc"])
@pytest.mark.parametrize(("env", "states", "depth", "discount"), SETTINGS)
def test_expected_updates_of_separate_layers_agree_with_torch(env, states, depth, discount, algo):
    depth = min(depth, 9)
    tasks = tasks_of(env, states, GROUPS + 3)
    weights = larger_weights(states)
    found = expected_updates(weights, tasks, algo, depth, discount)
    each = np.array([naive.separate_update(weights, tasks, i, algo, depth, discount) for i in range(len(tasks))])
    # The first groups have two tasks, the others one.
    expected = np.stack([part.mean(axis=0) for part in np.array_split(each, GROUPS)])
    assert np.abs(found - expected).max() < ENGINES * np.abs(expected).max()
    rows = embeddings(weights, tasks, discount, depth)
    *_, last = gradients(rows)
    looped = last.expected_updates(tasks.stationary * rows.expected_errors(algo)[:, -1])
    assert np.abs(looped - each.sum(axis=1)).max() < ENGINES * np.abs(each).max()


def test_dividing_attention_divides_A():
    tasks, weights = tasks_of("loop", 4, GROUPS), larger_weights(4)
    other = ictd.Weights(weights.u, weights.A / 4)
    scaled, divided = (
        expected_updates(weights, tasks, "td", 5, 0.9, 1 / 4),
        expected_updates(other, tasks, "td", 5, 0.9),
    )
    np.testing.assert_allclose(scaled[..., :8], divided[..., :8], rtol=ENGINES)
    np.testing.assert_allclose(scaled[..., 8:], divided[..., 8:] / 4, rtol=ENGINES)


@pytest.mark.parametrize(
    ("env", "states", "depth", "discount"), [*SETTINGS, ("loop", 12, 200, 0.7), ("boyan", 3, 90, 0.97)]
)
def test_the_papers_statements_hold_and_one_step_of_a_proof_does_not(env, states, depth, discount):
    rows = embeddings(ictd.theta_td(states), tasks_of(env, states, 60), discount, depth)
    done = statements.descent(rows)
    wrong = {"lemma_2_context_sum", "lemma_2_step"}
    for statement in statements.OF_VALUES:
        if statement.__name__ not in wrong:
            assert not statement(rows).violations.any(), statement.__name__
    for statement in statements.OF_GRADIENTS:
        assert not statement(rows, done.norms).violations.any(), statement.__name__
    if depth > 1:
        assert statements.lemma_2_step(rows).violations[:, 2:].all() or discount == 0


def test_statements_notice_weights_that_are_not_theta_td():
    tasks, theta = tasks_of("boyan", 5, 40), ictd.theta_td(5)
    slower = embeddings(ictd.Weights(theta.u, 0.9 * theta.A), tasks, 0.9, 60)
    for statement in (statements.lemma_1, statements.lemma_4):
        assert statement(slower).violations.any(), statement.__name__
    # With another step size the context's entries are TD errors all the same; with other weights they are not.
    assert not statements.lemma_2_step_corrected(slower).violations.any()
    assert statements.lemma_2_step_corrected(embeddings(larger_weights(5), tasks, 0.9, 3)).violations.any()
    larger = embeddings(ictd.Weights(theta.u, 1.8 * theta.A), tasks, 0.9, 60)
    done = statements.descent(larger)
    for statement in (statements.lemma_2_query, statements.lemma_2_context):
        assert statement(larger).violations.any(), statement.__name__
    for statement in statements.OF_GRADIENTS:
        assert statement(larger, done.norms).violations.any(), statement.__name__


def test_descent_takes_gradients_at_theta_td():
    tasks = tasks_of("boyan", 4, GROUPS)
    rows = embeddings(ictd.theta_td(4), tasks, 0.8, 12)
    done = statements.descent(rows)
    for algo in ("td", "mc"):
        for depth in (1, 5, 12):
            looped = expected_updates(ictd.theta_td(4), tasks, algo, depth, 0.8).sum(axis=1).mean(axis=0)
            np.testing.assert_allclose(done.updates[algo][depth], looped, atol=ROUNDING * np.abs(looped).max() * 100)
    *_, last = gradients(rows)
    whole = np.abs(last.query_A()).sum(axis=(-2, -1)) + np.abs(last.V).sum(axis=-2)
    np.testing.assert_allclose(done.norms["theta"][:, 12], whole.max(axis=1))
    np.testing.assert_allclose(done.norms["u_context"][:, 12], [np.linalg.norm(U, 1) for U in last.U])
    induced = [max(np.linalg.norm(matrix, 1) for matrix in of_task) for of_task in last.query_A()]
    np.testing.assert_allclose(done.norms["A_query"][:, 12], induced)


def test_norm_of_an_update_that_is_zero_is_its_noise():
    rng = np.random.default_rng(0)
    samples = [neu(rng.normal(0, 3, (GROUPS, 400))) for _ in range(50)]
    assert np.mean([s.norm for s in samples]) == pytest.approx(np.mean([s.noise for s in samples]), rel=0.02)
    signal = rng.normal(0, 50, 400)
    samples = [neu(signal + rng.normal(0, 3, (GROUPS, 400))) for _ in range(400)]
    assert np.mean([s.norm for s in samples]) == pytest.approx(np.abs(signal).sum(), rel=0.01)
    spread = np.std([s.norm for s in samples])
    assert np.mean([s.standard_error for s in samples]) == pytest.approx(spread, rel=0.1)


def test_sixty_digits():
    tasks = tasks_of("loop", 2)
    exact, bound = exact_tails(tasks, 1, 0.9, 500)
    expected = naive.exact_errors(tasks.transition[1], tasks.reward[1], 0.9, 500)
    np.testing.assert_allclose(exact, expected, rtol=ROUNDING)
    np.testing.assert_allclose(bound, expected[0].max() * 0.9 ** np.arange(501), rtol=ROUNDING)
    assert exact[500].max() < 1e-20
    tasks = tasks_of("boyan", 4, GROUPS)
    for algo in ("td", "mc"):
        each = [exact_update(tasks, i, algo, 0.9, 7) for i in range(GROUPS)]
        looped = expected_updates(ictd.theta_td(4), tasks, algo, 7, 0.9).sum(axis=1)
        np.testing.assert_allclose(looped, each, atol=ROUNDING * np.abs(each).max())


@pytest.fixture(scope="module")
def checks(smoke) -> dict[str, pd.DataFrame]:
    folder = smoke / "results-smoke/theory"
    return {path.stem: load_table(path) for path in folder.glob("*.csv")}


def failing(tables, discount=0.9):
    return {claim.id for claim in check_theory(tables, discount) if claim.verdict == "fails"}


def test_claims_follow_the_tables(checks):
    claims = check_theory(checks, 0.9)
    assert len({claim.id for claim in claims}) == len(claims)
    before = failing(checks)
    # Forty layers are too few for errors to vanish, or for rates to settle; the rest is as at full size.
    kinds = {name.split("/")[0] for name in before}
    assert {"lemma_2_step", "theorem_1", "theorem_2", "corollary_1"} <= kinds
    assert not {"lemma_1", "lemma_2_query", "lemma_2_context", "lemma_3", "lemma_4", "gradients_fused"} & kinds

    def after(table, change):
        changed = {**checks, table: checks[table].copy()}
        change(changed[table])
        return failing(changed) - before

    def exceed(name, env, states):
        def change(rows):
            where = (rows["statement"] == name) & (rows["env"] == env) & (rows["states"] == states)
            rows.loc[rows[where].index[3], "violations"] = 1

        return change

    assert after("statements", exceed("lemma_1", "boyan", 6)) == {"lemma_1/boyan-6"}
    assert after("statements", exceed("lemma_3", "boyan", 3)) == {"lemma_3/boyan-3"}
    for column, kind in (("bound", "theorem_2_bound"), ("sharper", "theorem_2_sharper")):
        where = (checks["neu"]["algo"] == "td") & (checks["neu"]["layer"] == 9) & (checks["neu"]["env"] == "loop")
        assert after("neu", lambda rows, at=where, name=column: rows.__setitem__(name, rows[name].mask(at, 0.0))) == {
            f"{kind}/loop-4"
        }
    assert after("agreement", lambda rows: rows.__setitem__("fused", 1e-9)) == {"gradients_fused/all"}
    assert after("precision", lambda rows: rows.__setitem__("exact", rows["exact"] * 10)) >= {"theorem_1_digits/all"}
    assert after("precision", lambda rows: rows.__setitem__("difference", rows["exact"] * 1e-8)) == {
        "theorem_2_digits/all", "corollary_1_digits/all",
    }  # fmt: skip


def test_claims_of_a_decay(checks):
    """J's that fall as gamma^L, or as half that rate, or not."""
    rows = checks["neu"].query("algo == 'td' and env == 'boyan' and states == 4").copy()
    depth = 600
    base = pd.DataFrame({"algo": "td", "env": "boyan", "states": 4, "layer": np.arange(depth + 1)})
    for power, expected in (
        (1.0, set()),
        (0.5, {"theorem_2_rate"}),
        (0.0, {"theorem_2", "theorem_2_rate", "theorem_2_separate"}),
    ):
        norm = 0.9 ** (power * base["layer"])
        table = base.assign(norm=norm, standard_error=0.0, noise=0.0, bound=2.0, sharper=2.0, separate=norm)
        found = {name.split("/")[0] for name in failing({**checks, "neu": table})}
        of_neu = {"theorem_2", "theorem_2_bound", "theorem_2_rate", "theorem_2_sharper", "theorem_2_separate"}
        assert found & of_neu == expected
    assert len(rows)


def test_bad_input_is_named():
    tasks = tasks_of("boyan", 4)
    with pytest.raises(ValueError, match=r"for 5 states, and the tasks have 4\."):
        embeddings(ictd.theta_td(5), tasks, 0.9, 3)
    with pytest.raises(ValueError, match="discount is 1"):
        embeddings(ictd.theta_td(4), tasks, 1, 3)
    with pytest.raises(ValueError, match="there are 2 tasks; give at least 20"):
        expected_updates(ictd.theta_td(4), tasks, "td", 3, 0.9)
    with pytest.raises(ValueError, match="a standard error needs at least two"):
        neu(np.ones((1, 3)))


def test_formulas_become_html():
    frame = pd.DataFrame({"claim": ["So $||Y_l||_inf <= gamma^L (x^{(i)})$ & theta^TD_L -> no."]})
    assert (
        "So <i>||Y<sub>l</sub>||<sub>∞</sub> ≤ γ<sup>L</sup> (x<sup>(i)</sup>)</i> &amp; θ<sup>TD</sup>_L -&gt; no."
        in html.table(frame)
    )
