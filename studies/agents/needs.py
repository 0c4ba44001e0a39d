"""What the study needs: jobs, memory and room for its results."""

import math

from ictd.pipeline.grid import seeds_in_a_job
from ictd.pipeline.needs import BASE, BLOCK, Needs, batch_td_memory


def needs(config: dict, cores: int | None) -> Needs:
    """Needs of the study; ``config`` is the whole configuration, checked."""
    own, algos, envs, S = config["agents"], len(config["algos"]), len(config["envs"]), config["agents"]["seeds"]
    depths, states, discounts, kinds = (len(own[key]) for key in ("depths", "states", "discounts", "attentions"))
    runs, of_attention, places = (
        algos * (1 + envs + depths + states + discounts),
        2 * algos * kinds,
        envs * (1 + discounts),
    )
    sizes = [min(S, seeds_in_a_job(config["seeds_per_job"], S, number, cores)) for number in (runs, of_attention)]
    m, K, test, tuning = config["states"][0], own["snapshots"] + 1, own["test_tasks"], own["tuning_tasks"]
    n, lengths, steps = max([m, *own["states"]]), own["context_lengths"], own["step_sizes"]["number"]
    tested, history = batch_td_memory(test, n, max(lengths), 2 * n), 16 * K * (4 * n**2 + 2 * n)
    drawn = 8 * BLOCK * (25 * n**2 + 3 * own["lengths"][-1]) + 64 * config["batch_size"] * config["rollout_steps"]
    memory = {
        "agents_pretrain": drawn + sizes[0] * history,
        # A column for each pair of states.
        "agents_pretrain_attention": drawn + 40 * BLOCK * m**3 + 72 * m**4 + 48 * m**2 * config["depths"][0],
        "agents_evaluate": tested + S * (history + 16 * K * len(lengths) * test),
        "agents_evaluate_attention": tested + 40 * test * m**4,
        "agents_baselines": tested + batch_td_memory(tuning, n, max(lengths), (4 + 2 * len(lengths)) * steps)
        + 8 * tuning * max(own["ridges"]["number"], own["pseudo_steps"]["number"]) + 32 * own["bayes_samples"] * n**2,
    }  # fmt: skip
    values = algos * (places * (envs + discounts) + depths + states)
    jobs = runs * math.ceil(S / sizes[0]) + of_attention * math.ceil(S / sizes[1]) + values + kinds + 2 * places
    room = S * (runs * history / 2 + values * 16 * K * len(lengths))
    return Needs(jobs, room, {rule: BASE + most for rule, most in memory.items()})
