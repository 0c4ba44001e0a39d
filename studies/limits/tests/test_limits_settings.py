"""The study's settings, and the jobs of its rules."""

import pytest

from ictd.pipeline.config import load_config
from ictd.pipeline.provenance import PROJECT
from studies.limits.grid import forms


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"descents": 3}, "limits has an unknown key 'descents'"),
        ({"descend": {"tolerance": 0}}, "limits.descend.tolerance is 0; give more than 0"),
        ({"course": {"discounts": [1.5]}}, "value 1 of limits.course.discounts is 1.5; give less than 1"),
        ({"course": {"marks": [400, 100]}}, "limits.course.marks is [400, 100]; give them in ascending order"),
        ({"forms": {"contexts": 1}}, "limits.forms.contexts is 1; give at least 20"),
    ],
)
def test_bad_settings_are_named_in_one_sentence(given, message):
    with pytest.raises(ValueError) as raised:
        load_config({"limits": given}, PROJECT)
    assert message in str(raised.value) and "\n" not in str(raised.value)


def test_a_form_for_each_head_and_number():
    assert forms([20, 5, 80]) == ["alone", "one", "one-20", "heads", "heads-5", "heads-80"]
