"""An edit of a kernel that the study's kernels call is seen by these."""

from edited_kernels import check_edits
from test_kernels import calls_across_modules

# For each module whose kernels the study's call, an edit that changes what these train.
EDITS = {
    "ictd.fused_engine": ("parameter[i] -= rate", "parameter[i] -= 2.0 * rate"),
    "ictd.gram_engine": ("largest / np.sqrt", "-largest / np.sqrt"),
}
TRAINING = """
from edited_kernels import say_what_it_trains
from studies.agents.attention_engine import Attention, AttentionEngine, columns_of
contexts = lambda tasks: columns_of(tasks, 0.9, tasks.reward)
say_what_it_trains("studies.agents.attention_engine", AttentionEngine, contexts, Attention())
"""


def test_an_edit_of_a_called_kernel_gives_the_bytes_of_a_clean_run(tmp_path):
    pairs = {pair for pair in calls_across_modules() if pair[0].startswith("studies.agents.")}
    check_edits(tmp_path, TRAINING, pairs, EDITS)
