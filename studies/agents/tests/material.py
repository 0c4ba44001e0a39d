"""What the study's tests pretrain on."""

import ictd
from ictd.gram import gram_of
from studies.agents.context_engine import sample_contexts


def sampled_material(env, states, size, lengths, discount):
    """Tasks, unrolls, the Gram matrices of a context of each, and the paths that the contexts come from."""
    tasks = ictd.sample_tasks(env, states, size, ictd.generator(0, env, states, "tasks"))
    unrolls = ictd.unroll(tasks, 16, discount, 20, ictd.generator(0, env, states, "unrolls"))
    contexts = sample_contexts(tasks, lengths, ictd.generator(0, env, states, "contexts"))
    paths = ictd.sample_paths(tasks, int(lengths.max()), ictd.generator(0, env, states, "contexts"))
    return tasks, unrolls, gram_of(contexts, discount), paths
