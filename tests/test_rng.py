"""Streams of random numbers."""

import ictd


def test_the_streams_of_published_results_do_not_change():
    """Other streams would change every result."""
    drawn = ictd.generator(0, "boyan", 5, "tasks").integers(2**63, size=2)
    assert drawn.tolist() == [3306955339824466221, 8404079031529606255]
