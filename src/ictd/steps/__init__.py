"""The work of the paper's rules, a module each: a ``main`` reads files, calls the library and writes files.

``python -m ictd.pipeline.runner ictd.steps.NAME --help`` says what one takes.
"""
