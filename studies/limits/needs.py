"""What the study needs: jobs, memory and room for its results."""

from ictd.pipeline.needs import BASE, Needs
from studies.limits import grid


def needs(config: dict, cores: int | None) -> Needs:
    """Needs of the study; ``config`` is the whole configuration, checked."""
    own, m = config["limits"], config["states"][0]
    descend, course, forms, fits = (own[name] for name in ("descend", "course", "forms", "shrinkage"))
    n, K, step = max(descend["states"]), len(forms["lengths"]), 12 * m**2 + 3 * max(forms["lengths"])
    memory = {
        "limits_descend": 80 * descend["fixed_tasks"] * n**2 + 64000 * n**3 + 900 * n**4,
        "limits_course": 64 * course["marks"][-1] * m**2,
        "limits_forms": 8 * K * (forms["contexts"] + 2 * forms["test_tasks"]) * step + 64000 * m**3 + 4000 * m**4,
        "limits_shrinkage": 8 * (fits["tasks"] * (step + 10 * m**2) + K * fits["fit_tasks"] * step),
    }
    settings = len(config["envs"]) * len(descend["states"]) * len(descend["depths"])
    jobs = settings + course["seeds"] + 1 + len(grid.forms(forms["added"])) + len(grid.KINDS) + 4
    rows = settings * (2 * descend["starts"] + 4 * n**2) + 400 * course["seeds"]
    return Needs(jobs, 250 * rows, {rule: BASE + most for rule, most in memory.items()})
