"""``python -m ictd.steps NAME --option value ...``: carry out a step, or list all of them."""

from ictd.pipeline.runner import command

command()
