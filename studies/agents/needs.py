"""What the study needs: jobs, memory and room for its results."""

import math

from ictd.pipeline.grid import seeds_in_a_job
from ictd.pipeline.needs import BASE, BLOCK, Needs, batch_td_memory
from studies.agents.grid import PROMPTS


def needs(config: dict, cores: int | None) -> Needs:
    """Needs of the study; ``config`` is the whole configuration, checked."""
    own, algos, S = config["agents"], len(config["algos"]), config["agents"]["seeds"]
    runs = algos * (1 + len(config["envs"]) + sum(len(own[key]) for key in ("depths", "states", "discounts")))
    kinds, places = len(own["attentions"]), len(config["envs"]) * (1 + len(own["discounts"]))
    of_attention = len(PROMPTS) * algos * kinds
    sizes = [min(S, seeds_in_a_job(config["seeds_per_job"], S, number, cores)) for number in (runs, of_attention)]
    n, m = max([config["states"][0], *own["states"]]), config["states"][0]
    block, K, test = min(BLOCK, own["main_tasks"]), own["snapshots"] + 1, own["test_tasks"]
    lengths, steps = own["context_lengths"], own["step_sizes"]["number"]
    drawn = 8 * block * (25 * n**2 + 3 * own["lengths"][-1]) + 64 * config["batch_size"] * config["rollout_steps"]
    history = 16 * K * (4 * n**2 + 2 * n)
    tested = batch_td_memory(test, n, max(lengths), 2 * n)
    tuned = steps * (4 + 2 * len(lengths))
    memory = {
        "agents_pretrain": drawn + max(sizes) * history + 48 * n * max([config["depths"][0], *own["depths"]]),
        # A column for each pair of states.
        "agents_pretrain_attention": drawn + 40 * block * m**3 + 72 * m**4 + 48 * m**2 * config["depths"][0],
        "agents_evaluate": tested + S * (history + 16 * K * len(lengths) * test),
        "agents_evaluate_attention": tested + 40 * test * m**4,
        "agents_baselines": tested + batch_td_memory(own["tuning_tasks"], n, max(lengths), tuned)
        + 8 * own["tuning_tasks"] * (own["ridges"]["number"] + steps * len(own["updates"]))
        + 32 * own["bayes_samples"] * n**2,
    }  # fmt: skip
    values = algos * (places * (len(config["envs"]) + len(own["discounts"])) + len(own["depths"]) + len(own["states"]))
    jobs = runs * math.ceil(S / sizes[0]) + values + of_attention * math.ceil(S / sizes[1]) + kinds + 2 * places
    room = S * runs * history / 2 + values * 16 * S * K * len(lengths)
    return Needs(jobs, room, {rule: BASE + needed for rule, needed in memory.items()})
