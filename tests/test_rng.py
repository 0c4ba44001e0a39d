"""Streams of random numbers."""

import ictd


def test_streams_differ_in_each_of_their_keys():
    keys = {(0, "boyan", 5, "tasks"), (1, "boyan", 5, "tasks"), (0, "loop", 5, "tasks"), (0, "boyan", 3, "tasks")}
    keys |= {(0, "boyan", 5, purpose) for purpose in ("batches", "validation", "tuning")}
    assert len({ictd.generator(*key).integers(2**63) for key in keys}) == len(keys)


def test_the_streams_of_published_results_do_not_change():
    """Other streams would change every result."""
    drawn = ictd.generator(0, "boyan", 5, "tasks").integers(2**63, size=2)
    assert drawn.tolist() == [3306955339824466221, 8404079031529606255]
