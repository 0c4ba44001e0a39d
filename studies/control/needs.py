"""What the study needs: jobs, memory and room for its results."""

from ictd.pipeline.needs import BASE, BLOCK, Needs
from studies.control.grid import LIMITS, places, snapshots, tried, variants


def needs(config: dict, cores: int | None) -> Needs:
    """Needs of the study; ``config`` is the whole configuration, checked."""
    own, of, where, acts = config["control"], variants(config), places(config), config["control"]["online"]
    N, lengths, K = max(own["test_processes"], own["tuning_processes"]), own["context_lengths"], own["iterations"]
    d, weights = max(one["states"] * one["actions"] for one in of.values()), 32 * own["seeds"] * len(snapshots(config))
    rows = [4 + own["seeds"] * (len(tried(config, place)) + len(snapshots(config))) for place in where]
    rows[0] += len(LIMITS) * (1 + own["seeds"])
    row, steps = 4 * len(lengths) * N * (K + 5), own["prompt_lengths"][-1]
    memory = {
        "pretrain": weights * d**2 + 8 * BLOCK * (25 * d**2 + 3 * steps + 4 * own["batch"] * own["rollout"]),
        "offline": 4 * row * max(rows) + 8 * N * (60 * d**2 + 4 * max(lengths) + 6 * K * d),
        "online": 8 * max(acts["test_processes"], acts["tuning_processes"]) * (60 * d**2 + 2 * acts["steps"]),
        "claims": 3 * row * sum(rows) + 2.4e5 * max(N, acts["test_processes"]),
    }
    room = len(of) * weights * d**2 + row * sum(rows) + 1.5e7
    return Needs(len(of) + len(where) + 6, room, {f"control_{rule}": BASE + most for rule, most in memory.items()})
