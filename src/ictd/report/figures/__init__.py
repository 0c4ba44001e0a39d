"""Drawings of the figures of the paper's part (``ictd.report.paper.figures``), and the style of all figures.

Figures 1, 5, 7 and 10 are ``msve_curves``, 2, 4, 6 and 9 ``weight_maps``, 3 and 8 ``environment_diagrams``.
"""
