"""The Transformer on whole prompts."""

import naive
import numpy as np
import pytest
import torch

import ictd
from ictd.evaluation import draw_unseen_tasks

STATES, DISCOUNT = 4, 0.85


@pytest.fixture(scope="module")
def data():
    return draw_unseen_tasks(7, STATES, 5, 25, DISCOUNT, "boyan")


@pytest.mark.parametrize("discount", [0.9, 0.0])
def test_the_number_of_queries_is_checked(data, discount):
    columns = ictd.enumerated_columns(data.tasks.transition, data.tasks.reward, discount)
    joint, model = ictd.joint_prompt(columns), ictd.LinearTransformer(naive.larger_weights(STATES), 3)
    # With a discount of 0, context columns without a reward look like queries.
    refused = [(joint, 3)] if discount > 0 else [(ictd.prompts_of(columns), None)]
    for prompt, queries in [*refused, (joint, None), (joint, 0), (joint, 5), (columns, 1)]:
        with pytest.raises(ValueError, match="quer"):
            model(prompt, queries)


def test_prompts_of_other_types_are_converted(data):
    joint, model = ictd.joint_prompt(data.columns(6)), ictd.LinearTransformer(naive.larger_weights(STATES), 3)
    values = model(joint, queries=4).detach().numpy()
    single = model(torch.from_numpy(joint).float(), queries=4).detach().numpy()
    np.testing.assert_allclose(single, values, atol=1e-4 * np.abs(values).max())
