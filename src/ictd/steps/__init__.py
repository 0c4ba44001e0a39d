"""Steps: modules whose function ``main`` does the work of a rule.  It reads files, calls the library and writes files.

``python -m ictd.pipeline.runner ictd.steps.NAME --help`` lists the arguments of a step.
"""
