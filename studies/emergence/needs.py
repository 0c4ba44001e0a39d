"""What the study needs: jobs, memory and room for its results."""

from ictd.pipeline.grid import cells
from ictd.pipeline.needs import BASE, BLOCK, Needs, batch_td_memory


def needs(config: dict, cores: int | None) -> Needs:
    """Needs of the study; ``config`` is the whole configuration, checked."""
    own, S, algos, L = config["emergence"], config["seeds"], len(config["algos"]), config["depths"][0]
    course, plane, lengths, steps = own["course"], own["phase"], own["context_lengths"], own["step_sizes"]["number"]
    n, m, q, K = max(config["states"]), config["states"][0], max(plane["states"]), course["snapshots"]
    history, bits = 16 * K * (4 * m**2 + 2 * m), 64 * config["batch_size"] * config["rollout_steps"]
    memory = {
        "emergence_ablate": batch_td_memory(own["tuning_tasks"], n, max(lengths), steps)
        + batch_td_memory(own["tasks"], n, max(lengths), 3 * n) + 500 * S * (len(lengths) + 1) * own["tasks"],
        "emergence_course": 64 * BLOCK * m**2 + bits + history,
        "emergence_course_measures": 8 * K * own["tasks"] * (8 * m**2 + 2 * len(lengths)) + history,
        "emergence_phase": 64 * plane["tasks"] * q**2 + bits + 48 * q * max(plane["depths"])
        + batch_td_memory(own["tasks"] + plane["tuning_tasks"], q, 1, steps),
        # Autograd keeps arrays of all runs at once, and each run may have all of P and Q in each layer.
        "emergence_readings": 2 * S * config["tasks"] * (9 * m**2 + 32 * m) + 100 * algos * S * L * (m + 2) ** 3,
    }  # fmt: skip
    courses = algos * len(config["envs"]) * course["seeds"]
    jobs = courses + len(plane["states"]) * plane["seeds"] + len(cells(config)) + len(own["readings"]) + 15
    return Needs(jobs, courses * history / 2, {rule: BASE + most for rule, most in memory.items()})
