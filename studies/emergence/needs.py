"""What the study needs: jobs, memory and room for its results."""

from ictd.pipeline.grid import cells
from ictd.pipeline.needs import BASE, BLOCK, Needs, batch_td_memory


def needs(config: dict, cores: int | None) -> Needs:
    """Needs of the study; ``config`` is the whole configuration, checked."""
    own, algos, S = config["emergence"], len(config["algos"]), config["seeds"]
    course, plane = own["course"], own["phase"]
    n, m, q = max(config["states"]), config["states"][0], max(plane["states"])
    L, longest, lengths = config["depths"][0], max(own["context_lengths"]), len(own["context_lengths"])
    steps, bits = own["step_sizes"]["number"], 64 * config["batch_size"] * config["rollout_steps"]
    block, K = min(BLOCK, max(course["td_tasks"], course["mc_tasks"])), course["snapshots"]
    # Autograd keeps arrays of all runs at once, and each run may have all of P and Q in each layer.
    width = 2 * m + 1
    memory = {
        "emergence_ablate": batch_td_memory(own["tuning_tasks"], n, longest, steps)
        + batch_td_memory(own["tasks"], n, longest, 3 * n) + 250 * S * (lengths + 1) * own["tasks"],
        "emergence_course": 64 * block * m**2 + bits + 16 * K * (4 * m**2 + 2 * m) + 48 * L * m,
        "emergence_course_measures": batch_td_memory(own["tasks"], m, longest, 3 * m)
        + 8 * K * own["tasks"] * (8 * m**2 + 2 * lengths) + 16 * K * (4 * m**2 + 2 * m),
        "emergence_phase": 64 * plane["tasks"] * q**2 + bits + 48 * q * max(plane["depths"])
        + batch_td_memory(own["tasks"] + plane["tuning_tasks"], q, 1, steps),
        "emergence_readings": 2 * S * config["tasks"] * (9 * m**2 + 32 * m)
        + algos * S * L * (48 * m * width * (m + 1) + 80 * width**2),
    }  # fmt: skip
    seeds = algos * len(config["envs"]) * course["seeds"] + len(plane["states"]) * plane["seeds"]
    jobs = seeds + len(cells(config)) + len(own["readings"]) + 15
    room = 8 * algos * len(config["envs"]) * course["seeds"] * K * (4 * m**2 + 2 * m)
    return Needs(jobs, room, {rule: BASE + needed for rule, needed in memory.items()})
