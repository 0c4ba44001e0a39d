"""The work of the paper's rules, a module each: a ``main`` reads files, calls the library and writes files.

``python -m ictd.steps`` lists these and all other modules that have a ``main``; ``python -m ictd.steps NAME --help``
says what one takes and writes.
"""
