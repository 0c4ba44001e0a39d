"""Steps: modules whose ``main`` does the work of a rule of the paper; it reads files, calls the library, writes files.

``python -m ictd.pipeline.runner ictd.steps.NAME --help`` lists the arguments of a step.
"""
