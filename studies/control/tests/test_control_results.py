"""Claims and numbers on made-up results."""

import numpy as np
import pytest

from ictd.pipeline.config import load_yaml
from ictd.pipeline.grid import variants
from ictd.pipeline.provenance import PROJECT
from ictd.report.part import statements_in
from ictd.storage import save_arrays
from studies.control import results as study

SETTINGS = load_yaml(PROJECT / "studies/control/config.yaml")
LENGTHS = [5, 20, 50]
# Shares after the last iteration for which all claims hold.
VALUES = {"rewards": 0.3, "theta_td": 0.4, "lspi": 0.8, "smoothed": 0.9}
VALUES |= {"layers_1": 0.4, "layers_10": 0.5, "on_grouped": 0.2, "on_enumerated": 0.2}
GAINS = {"": 0.0, " grouped": 0.1, " grouped pseudo_counts": 0.2}


def made_up(values=(), gains=(), first_gain=0.1):
    """Results in which ``values`` replaces some of VALUES, and ``gains`` some of GAINS; Transformers have 0.6."""
    by_name, rng = variants(SETTINGS["main"], SETTINGS["variants"]), np.random.default_rng(0)
    values, gains, shares = VALUES | dict(values), GAINS | dict(gains), {}
    places = {place["name"] for place in SETTINGS["places"]}
    rows = [(place, name, values[name], 1) for place in places for name in study.BASELINES]
    rows += [
        (variant["place"], name + prompts, values.get(name, 0.6) + gain, 3)
        for name, variant in by_name.items()
        for prompts, gain in gains.items()
    ]
    for place, method, value, seeds in rows:
        shares[place, method] = value + 1e-3 * rng.normal(size=(seeds, len(LENGTHS), 4, 30))
        shares[place, method][:, :, 1] -= first_gain
    parameters = {key: np.array([1.0, 2.0, 3.0]) * ("lspi" in key) for key in shares}
    return study.Results(by_name, LENGTHS, shares, parameters)


def verdicts(results):
    """Verdicts in all settings, by the names of claims."""
    return {one.id: [claim.verdict for claim in one.decide(results)] for one in statements_in(study)}


def test_all_claims_can_hold_and_are_decided_for_three_numbers_of_transitions():
    found = verdicts(made_up())
    assert all(set(of_claim) == {"holds"} for of_claim in found.values())
    assert [len(of_claim) // 3 for of_claim in found.values()] == [5, 5, 5, 5, 3, 3, 2, 2, 5]


@pytest.mark.parametrize(
    ("changes", "fails"),
    [
        ({"values": {"smoothed": 0.7}}, {"behind_smoothed_with_pseudo_counts"}),
        ({"values": {"smoothed": 0.5}}, {"behind_smoothed", "behind_smoothed_with_pseudo_counts"}),
        ({"values": {"lspi": 0.5}}, {"behind_lspi"}),
        ({"values": {"rewards": 0.7}}, {"beats_rewards"}),
        ({"values": {"on_enumerated": 0.55}}, {"transitions_over_other_prompts"}),
        ({"values": {"layers_1": 0.55}}, {"deeper"}),
        ({"gains": {" grouped": -0.1}}, {"grouping_helps"}),
        ({"gains": {" grouped": 0.25}}, {"pseudo_counts_help"}),
        ({"first_gain": -0.1}, {"iterations_help"}),
    ],
)
def test_claims_can_be_refuted(changes, fails):
    found = verdicts(made_up(**changes))
    assert {name for name, of_claim in found.items() if "refuted" in of_claim} == fails


def test_intervals_are_over_processes_and_trials_are_seeds():
    """The first of three seeds is far below the baseline, and the others are above it."""
    results = made_up(values={"rewards": 0.4})
    results.shares["home", "mc"][0] -= 0.3
    (claim,) = (one for one in study.beats_rewards.decide(results) if one.setting == "mc-m = 5")
    assert claim.verdict == "holds" and claim.value == pytest.approx(0.1, abs=0.01)
    assert (claim.trials, claim.trials_hold) == (3, 2)


def test_shares_are_relative_to_the_uniform_and_the_optimal_policy(tmp_path):
    mean_value = np.array([[1.0, 2.0], [2.0, 2.0], [3.0, 5.0]])  # (K+1, N)
    rows = {"method": ["lspi", "td"], "parameter": [[2.0], [0.0]], "context_lengths": [5]}
    values = np.stack([mean_value - 1, mean_value])[:, None]
    values[0, 0, 0] = mean_value[0]
    save_arrays(tmp_path / "places/home.npz", **rows, mean_value=values, optimal=np.array([4.0, 7.0]))
    results = study.load(tmp_path, SETTINGS | {"places": SETTINGS["places"][:1]})
    # The optimal policy is better than the uniform policy by 3 and by 5, so the mean is 4.
    np.testing.assert_allclose(results.shares["home", "td"][0, 0], [[0.25, -0.25], [0.5, -0.25], [0.75, 0.5]])
    assert results.parameters["home", "lspi"] == [2]


def test_numbers_have_the_results():
    results = made_up()
    results.shares["home", "theta_td"][:, -1] -= 0.1
    found = study.differences.make(results)
    assert found["minus_theta_td_short"] == pytest.approx(0.2, abs=0.01)
    assert found["minus_theta_td_long"] == pytest.approx(0.3, abs=0.01)
    low, high = (found[f"enumerated_minus_smoothed_short_{end}"] for end in ("low", "high"))
    assert low < found["enumerated_minus_smoothed_short"] < high and abs(low + 0.5) < 0.01
