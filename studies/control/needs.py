"""What the study needs: jobs, memory and room for its results."""

from ictd.pipeline.needs import BASE, BLOCK, Needs
from studies.control.grid import LIMITS, places, tried, variants


def needs(config: dict, cores: int | None) -> Needs:
    """Needs of the study; ``config`` is the whole configuration, checked."""
    own, of, where, acts = config["control"], variants(config), places(config), config["control"]["online"]
    N, lengths, K = max(own["test_processes"], own["tuning_processes"]), own["context_lengths"], own["iterations"]
    d, weights = max(one["states"] * one["actions"] for one in of.values()), 32 * own["seeds"] * len(own["snapshots"])
    runs = max(len(tried(config, place)) for place in where) + len(own["snapshots"]) + len(LIMITS) + 1
    rows = 4 + len(LIMITS) + own["seeds"] * runs
    kept, steps = 8 * rows * len(lengths) * N * (K + 7), own["prompt_lengths"][-1]
    memory = {
        "pretrain": weights * d**2 + 8 * BLOCK * (25 * d**2 + 3 * steps + 4 * own["batch"] * own["rollout"]),
        "offline": 2 * kept + 8 * N * (60 * d**2 + 4 * max(lengths) + 6 * K * d),
        "online": 8 * max(acts["test_processes"], acts["tuning_processes"]) * (60 * d**2 + 2 * acts["steps"]),
        "claims": 3 * kept + 2.4e5 * max(N, acts["test_processes"]),
    }
    room = len(of) * weights * d**2 + len(where) * kept
    return Needs(len(of) + len(where) + 6, room, {f"control_{rule}": BASE + most for rule, most in memory.items()})
