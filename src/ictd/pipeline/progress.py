"""What Snakemake says of a job that is done: one line, with what it was and how far the whole is."""

import logging
from pathlib import Path

# What it says of each choice of jobs to run.
CHOOSING = "Select jobs to execute..."


def show_progress(logger: logging.Logger, logs: Path) -> None:
    """Have Snakemake's own output say it of jobs whose log is in the folder ``logs``, or that have none."""
    for handler in (one for one in logger.handlers if one.name == "DefaultStreamHandler"):
        progress = Progress(logs)
        # Before its own filter, which keeps away the start of jobs.
        handler.filters.insert(0, progress)
        handler.formatter.format_progress = progress.line


class Progress:
    """Remembers the names of jobs: of one that ends, Snakemake tells only the number."""

    def __init__(self, logs: Path):
        self.logs, self.names, self.ended = logs, {}, ""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a message is to be passed on: all but those that the line takes the place of."""
        event = getattr(getattr(record, "event", None), "value", None)
        if event == "job_info":
            log = Path(*record.log[:1]) if record.log else self.logs / record.rule_name
            if log.is_relative_to(self.logs):
                self.names[record.jobid] = job_name(log.relative_to(self.logs), record.wildcards)
        if event == "job_finished":
            self.ended = self.names.get(record.job_id, "steps done")
            return record.job_id not in self.names
        return event != "job_started" and record.msg != CHOOSING

    def line(self, said: dict) -> str:
        """The line, of what Snakemake says of the progress."""
        return f"{said['done']} of {said['total']} ({100 * said['done'] // said['total']}%) {self.ended}"


def job_name(log: Path, wildcards: dict) -> str:
    """A job by the place of its log, such as "pretrain mc-boyan-5-60, seeds 0-19"."""
    rule, *parts = f"{log}".removesuffix(".log").split("/")
    for word in ("seed", "seeds"):
        if word in wildcards and parts:
            parts[-1] = f"{word} {wildcards[word]}"
    return " ".join([rule, ", ".join(parts)]).rstrip()
