"""The figures of the report: ``report`` lists them, and the other modules draw them.

Figures 1, 5, 7 and 10 are ``msve_curves``, 2, 4, 6 and 9 ``weight_maps``, 3 and 8 ``environment_diagrams``.
"""
