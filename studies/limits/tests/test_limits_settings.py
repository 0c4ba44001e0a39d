"""The study's settings, and what its rules go through."""

import pytest
from projects import Study, in_megabytes
from studies.limits.needs import needs

from studies.limits.grid import forms

STUDY = Study("limits")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"descents": 3}, "limits has an unknown key 'descents'"),
        ({"descend": {"states": [50]}}, "value 1 of limits.descend.states is 50; give at most 20"),
        ({"descend": {"tolerance": 0}}, "limits.descend.tolerance is 0; give more than 0"),
        ({"course": {"discounts": [1.5]}}, "value 1 of limits.course.discounts is 1.5; give less than 1"),
        ({"forms": {"test_tasks": 5}}, "limits.forms.test_tasks is 5; give at least 20"),
        ({"shrinkage": {"seeds": 0}}, "limits.shrinkage.seeds is 0; give at least 1"),
        ({"shrinkage": {"seeds": 10**9}}, "limits.shrinkage.seeds is 1000000000; give at most 1000"),
        ({"descend": {"pretrained": 10**9}}, "limits.descend.pretrained is 1000000000; give at most 1000"),
        ({"course": {"test_tasks": 10**9}}, "limits.course.test_tasks is 1000000000; give at most 100000"),
        ({"descend": {"depths": [10**9]}}, "value 1 of limits.descend.depths is 1000000000; give at most 1000"),
        ({"course": {"marks": [400, 100]}}, "limits.course.marks is [400, 100]; give them in ascending order"),
        ({"forms": {"lengths": [10**9]}}, "value 1 of limits.forms.lengths is 1000000000; give at most 1000"),
        ({"forms": {"contexts": 1}}, "limits.forms.contexts is 1; give at least 20"),
    ],
)
def test_bad_settings_are_named_in_one_sentence(given, message):
    STUDY.check_refusal(given, message)


def test_single_settings_are_replaced():
    found = STUDY.settings({"course": {"seeds": "3"}})
    assert found["course"]["seeds"] == 3 and found["forms"]["contexts"] == 20000
    assert STUDY.smoke()["forms"]["lengths"] == [5, 20]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"forms": {"contexts": 10**9}}, "limits.forms.contexts is 1000000000, with which a job of rule limits_forms"),
        ({"shrinkage": {"tasks": 10**9}}, "limits.shrinkage.tasks is 1000000000, with which a job of rule limits_shr"),
    ],
)
def test_what_cannot_be_is_refused_by_its_key(given, message):
    STUDY.check_need(needs, given, message)


def test_every_setting_is_described():
    assert STUDY.undescribed() == []


def test_a_form_for_each_head_and_number():
    assert forms([20, 5, 80]) == ["alone", "one", "one-20", "heads", "heads-5", "heads-80"]


# Jobs, MB of results, and MB of memory beside Python's, so that no estimate changes unseen.
AT_FULL_SIZE = 50, 1.72, {
    "limits_descend": 12.56, "limits_course": 320.0, "limits_forms": 682.5, "limits_shrinkage": 728.0,
}  # fmt: skip


def test_estimates_are_what_they_were():
    assert in_megabytes(needs(STUDY.whole({}), 2)) == AT_FULL_SIZE
