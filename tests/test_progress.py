"""What Snakemake says while jobs run."""

import io
import logging
from pathlib import Path

from snakemake.logging import ColorizingTextHandler, DefaultFilter, DefaultFormatter
from snakemake.settings.enums import Quietness
from snakemake_interface_logger_plugins.common import LogEvent

from ictd.pipeline.progress import show_progress

LOGS = Path("results/logs")
JOBS = {
    7: ("pretrain", ["results/logs/pretrain/mc-boyan-5-60/0-19.log"], {"algo": "mc", "seeds": "0-19"}),
    8: ("mine_evaluate", ["results/logs/mine_evaluate/td-boyan-5-30-0.9/loop-0.5.log"], {"env": "boyan"}),
    9: ("all", [], {}),
    3: ("another", ["elsewhere/another.log"], {}),
}


def said_of(jobs: dict, quiet: set) -> list[str]:
    """Lines of Snakemake's own output while jobs run, one after the other."""
    logger, stream = logging.Logger("snakemake"), io.StringIO()
    own = DefaultFilter(quiet, debug_dag=False, verbose=False, dryrun=False, printshellcmds=False)
    logger.addHandler(ColorizingTextHandler(stream=stream, formatter=DefaultFormatter(quiet), filter=own))
    logger.handlers[0].name = "DefaultStreamHandler"
    show_progress(logger, LOGS)
    for done, (number, (rule, log, wildcards)) in enumerate(jobs.items(), 33):
        logger.info("Select jobs to execute...")
        logger.info("Execute 1 jobs...", extra={"event": LogEvent.JOB_STARTED, "jobs": [number]})
        started = {"jobid": number, "rule_name": rule, "log": log, "wildcards": wildcards}
        logger.info("Rule", extra={"event": LogEvent.JOB_INFO, **started})
        logger.info(f"Finished jobid: {number}", extra={"event": LogEvent.JOB_FINISHED, "job_id": number})
        logger.info(None, extra={"event": LogEvent.PROGRESS, "done": done, "total": 180})
    logger.info("Complete log(s): a.log")
    return stream.getvalue().splitlines()


def test_a_line_says_which_job_is_done_and_how_far_the_whole_is():
    first, second, third, time, of_another, last, end = said_of(JOBS, {Quietness.RULES})
    assert first == "33 of 180 (18%) pretrain mc-boyan-5-60, seeds 0-19"
    assert second == "34 of 180 (18%) mine_evaluate td-boyan-5-30-0.9, loop-0.5"
    assert third == "35 of 180 (19%) all" and last == "36 of 180 (20%) steps done"
    assert time.startswith("[") and of_another == "Finished jobid: 3" and end == "Complete log(s): a.log"


def test_who_wants_to_hear_nothing_hears_nothing():
    assert said_of(JOBS, {Quietness.ALL}) == []
    assert said_of(JOBS, {Quietness.RULES, Quietness.PROGRESS}) == ["Complete log(s): a.log"]
