"""``ictd.evaluate`` compares models with baselines, and ``ictd.pretrain`` warns of models that are worse than zero."""

import numpy as np
import pytest
from projects import ROOT

import ictd
from ictd.pipeline.config import load_yaml
from ictd.statistics import log_spaced

N, GAMMA, DEPTH, SIZE = 3, 0.9, 6, 7
ROTATION = np.linalg.qr(np.random.default_rng(0).normal(size=(N, N)))[0]
SAMPLED = ictd.SampledPrompts(3, 12)


def drawn(prompts, stream):
    """A context of each task, and the function that has the MSVE of estimates."""
    tasks = ictd.sample_tasks("loop", N, SIZE, ictd.generator(4, "loop", N, stream))
    v = ictd.value_function(tasks.transition, tasks.reward, GAMMA)
    contexts = prompts.contexts(tasks, ictd.generator(4, "loop", N, f"{stream} contexts"))
    return contexts, lambda estimates: (tasks.stationary * (estimates - v) ** 2).sum(axis=1)


@pytest.mark.parametrize(
    ("prompts", "grouped", "features"),
    [(SAMPLED, False, None), (SAMPLED, True, ROTATION), (ictd.EnumeratedPrompts(), False, ROTATION)],
)
def test_scores_are_those_of_the_public_functions_and_form_a_table(prompts, grouped, features):
    """Rotated features change no estimate of TD, nor of LSTD with a ridge."""
    settings = load_yaml(ROOT / "config.yaml")["evaluation"]
    steps = log_spaced(**settings["step_sizes"])
    contexts, errors = drawn(prompts, "tuning")
    with np.errstate(over="ignore"):
        scores = [errors(ictd.batch_td(contexts, GAMMA, step, DEPTH)).mean() for step in steps]
    contexts, errors = drawn(prompts, "validation")
    models = ictd.Model(ictd.theta_preconditioned_td([0.5 * np.eye(N), 1.5 * np.eye(N)]), DEPTH, GAMMA)
    own = models.values(contexts.grouped() if grouped else contexts)
    estimates = {"model[0]": own[0], "model[1]": own[1], "zero": 0, "constant": ictd.constant_estimate(contexts, GAMMA)}
    estimates["lstd"] = ictd.lstd(contexts, GAMMA, settings["lstd_ridge"])
    estimates["theta_td"] = ictd.batch_td(contexts, GAMMA, steps[np.argmin(scores)], DEPTH)
    found = ictd.evaluate(models, ictd.TaskDistribution("loop", N, features), prompts, grouped, SIZE, seed=4)
    assert list(found) == list(estimates)
    for name, estimate in estimates.items():
        error = errors(estimate)
        expected = error.mean(), np.median(error), error.std(ddof=1) / np.sqrt(SIZE)
        np.testing.assert_allclose(found[name], expected, rtol=1e-9, err_msg=name)
        assert f"{name} {found[name].mean:.4g}" in " ".join(str(found).split())


def queue(states, size, rng):
    """A customer comes or goes in each step; the cost is their number."""
    comes, longer = rng.uniform(0.2, 0.8, (size, 1, 1)), np.eye(states, k=1)
    longer[-1, -1] = 1
    return comes * longer + (1 - comes) * longer[::-1, ::-1], np.tile(np.arange(states), (size, 1))


def test_a_model_that_is_worse_than_zero_gets_a_warning(recwarn):
    """After pretraining on enumerated prompts, on sampled ones; what the warning says helps."""
    queues, prompts = ictd.TaskDistribution(queue, 5), ictd.SampledPrompts(5, 100)
    settings = {"depth": 20, "discount": 0.95, "updates": 2000, "progress": False}
    good = ictd.pretrain(queues, prompts=prompts, clip=1, **settings)
    assert not recwarn
    with pytest.warns(UserWarning, match="than 1 of 1 models, on contexts of 5 to 100 sampled steps;"):
        bad = ictd.pretrain(queues, **settings)
    bad, good = (ictd.evaluate(model, queues, prompts, size=200) for model in (bad, good))
    assert good["model"].mean < good["lstd"].mean < good["zero"].mean < bad["model"].mean
