"""Steps that check the theory.  The function ``main`` of each step computes one part and writes it as tables.

``python -m ictd.pipeline.runner ictd.steps.theory.NAME --help`` lists the arguments of a step.
"""
