"""The steps that check the theory: each has a function ``main`` that computes one part and writes it as tables.

``python -m ictd.pipeline.runner ictd.steps.theory.NAME --help`` lists what a step takes.
"""
