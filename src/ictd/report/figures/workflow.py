"""A diagram of the workflow, with a box for each group of rules."""

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from ictd.report.figures.style import WIDTH

# For each box its column, row, description and rules.
BOXES = {
    "Tasks": (0, 0, "and their batches, for\neach env, states and seed", "tasks"),
    "Returns": (1, 0, "of each task's\nbatch, for MC", "returns"),
    "Pretraining": (2, 0, "TD and MC, for each\nsetting and seed", "pretrain"),
    "Baselines": (0, 1, "LSTD, $\\theta^{\\mathrm{TD}}$ and zero\non unseen tasks", "baselines"),
    "Evaluation": (1, 1, "of all cells\non unseen tasks", "weights evaluate evaluate_claims"),
    "Audit": (2, 1, "trained again by\nthe other engine", "audit"),
    "Theory's checks": (
        0, 2, "both sides of each\nstatement",
        "theory_values theory_descent theory_family theory_pretrained theory_agreement theory_precision",
    ),
    "Tables and claims": (
        1, 2, "statistics, thresholds,\nverdicts",
        "metrics claims theory_tables pretrained_tables pages",
    ),
    "Figures": (
        2, 2, "1 to 10, the theory's,\nand ours",
        "curves diagrams theory_figures pretrained_figure",
    ),
    "Report": (
        1, 3, "page, and the manifest\nof all files",
        "notebook manifest all",
    ),
}  # fmt: skip
# Most arrows that follow from others are left out.
ARROWS = [
    ("Tasks", "Returns"), ("Returns", "Pretraining"), ("Pretraining", "Evaluation"), ("Pretraining", "Audit"),
    ("Evaluation", "Theory's checks"), ("Evaluation", "Tables and claims"),
    ("Baselines", "Evaluation"), ("Audit", "Tables and claims"), ("Theory's checks", "Tables and claims"),
    ("Tables and claims", "Figures"), ("Tables and claims", "Report"), ("Figures", "Report"),
]  # fmt: skip
# Size of a box, and steps between the middles of boxes, in inches.
SIZE, STEP = (1.56, 0.85), (1.95, -1.2)


def workflow(jobs: dict[str, int]) -> Figure:
    """Boxes with the numbers of jobs of their rules, and arrows from what is computed first.

    ``jobs`` has the numbers of jobs by rule; a rule that is not in it has one.
    """
    figure, axes = plt.subplots(figsize=(WIDTH, 4.46))
    patches = {}
    for name, (column, row, text, rules) in BOXES.items():
        x, y = STEP[0] * column, STEP[1] * row
        patches[name] = FancyBboxPatch(
            (x - SIZE[0] / 2, y - SIZE[1] / 2), *SIZE, boxstyle="round,pad=0,rounding_size=0.08", facecolor="0.96",
            edgecolor="0.3", lw=0.8,
        )  # fmt: skip
        axes.add_patch(patches[name])
        count = sum(jobs.get(rule, 1) for rule in rules.split())
        axes.text(x, y + 0.28, name, ha="center", va="center", weight="bold")
        axes.text(x, y + 0.01, text, ha="center", va="center", fontsize=7.5)
        axes.text(
            x, y - 0.3, f"{count} jobs" if count > 1 else "1 job", ha="center", va="center", fontsize=7.5, color="0.4"
        )
    for source, target in ARROWS:
        ends = [(STEP[0] * BOXES[name][0], STEP[1] * BOXES[name][1]) for name in (source, target)]
        style = {"arrowstyle": "-|>", "mutation_scale": 9, "lw": 0.8, "color": "0.3", "shrinkA": 0, "shrinkB": 1}
        axes.add_patch(FancyArrowPatch(*ends, patchA=patches[source], patchB=patches[target], **style))
    axes.set(aspect="equal", xlim=(-0.85, 4.75), ylim=(-4.07, 0.47))
    axes.axis("off")
    return figure
