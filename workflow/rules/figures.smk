# The figures of the report. A job draws several of them, because the import of Matplotlib takes as long as drawing one.


# These take longest, and do not wait for pretraining.
use rule step as theory_figures with:
    input:
        tables=tables_of("theory_figures"),
        options=step("ictd.report.figures.report", **drawing("theory_figures")),
    output:
        files_of("theory_figures"),
    pathvars:
        job="theory_figures",
    priority: 1
    localrule: True


use rule step as pretrained_figure with:
    input:
        tables=tables_of("pretrained_figure"),
        options=step("ictd.report.figures.report", **drawing("pretrained_figure")),
    output:
        files_of("pretrained_figure"),
    pathvars:
        job="pretrained_figure",
    localrule: True


use rule step as curves with:
    input:
        tables=tables_of("curves"),
        options=step("ictd.report.figures.report", **drawing("curves")),
    output:
        files_of("curves"),
    pathvars:
        job="curves",
    localrule: True


use rule step as diagrams with:
    input:
        tables=tables_of("diagrams"),
        options=step("ictd.report.figures.report", **drawing("diagrams")),
    output:
        files_of("diagrams"),
    pathvars:
        job="diagrams",
    localrule: True
