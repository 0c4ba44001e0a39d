# Claims, tables for readers, and the report.
# The tables that decide claims, and the tables that pages show.
CLAIM_TABLES = [table for table in [*TABLES, *UNSEEN_TABLES] if table not in ("step_sizes", "mean_entries")]
# The tables that pages quote.
QUOTED_TABLES = ["sentences", "choices", "beside", "accuracy"]
PAGE_TABLES = "over_tasks weights mean_weights audit".split()
# Files that the manifest lists, relative to the folder of results: results, pages and figures.
RESULT_FILES = ["claims.json", "sentences.json", "theory/claims.json", "numbers.csv"]
RESULT_FILES += expand("tables/{table}.csv", table=QUOTED_TABLES)
RESULT_FILES += expand("metrics/{table}.csv", table=[*TABLES, *UNSEEN_TABLES, "audit"])
RESULT_FILES += expand("theory/{table}.csv", table=THEORY_TABLES)
RESULT_FILES += expand("{kind}/{cell}.npz", kind=["weights", "evaluation"], cell=sorted(CELLS))
RESULT_FILES += expand("baselines/{setting}.npz", setting=BASELINES)
PAGE_FILES = expand("tables/{name}.html", name=PAGES)
FIGURE_FILES = expand("figures/{name}.{ending}", name=SHOWN_FIGURES, ending=["png", "svg"])
REPORT_FILES = [*FIGURE_FILES, *PAGE_FILES, "report.ipynb", "report.html", "explore.html"]
MANIFEST_FILES = [*RESULT_FILES, *REPORT_FILES]
DOCUMENTS = [ROOT / f"docs/{name}.md" for name in ("method", "theory")]


use rule step as claims with:
    input:
        tables=expand("<results>/metrics/{name}.csv", name=CLAIM_TABLES),
        theory_tables=expand("<results>/theory/{table}.csv", table=THEORY_TABLES),
        options=step(
            "ictd.report.claims",
            MAIN,
            sentences=ROOT / "report/sentences.toml",
            folder=RESULTS / "tables",
        ),
    output:
        expand("<results>/tables/{name}.csv", name=QUOTED_TABLES),
        numbers="<results>/numbers.csv",
        claims="<results>/claims.json",
        decided="<results>/sentences.json",
        theory="<results>/theory/claims.json",
    pathvars:
        job="claims",
    priority: 1
    localrule: True


use rule step as pages with:
    input:
        claims="<results>/claims.json",
        theory="<results>/theory/claims.json",
        sentences="<results>/sentences.json",
        tables=["<results>/theory/statements.csv", *expand("<results>/metrics/{name}.csv", name=PAGE_TABLES)],
        options=step(
            "ictd.report.pages",
            settings=PAPER_SETTINGS,
            schema=SCHEMA_FILE,
            folder=RESULTS / "tables",
        ),
    output:
        [html(name) for name in PAGES],
    pathvars:
        job="pages",
    localrule: True


use rule step as notebook with:
    input:
        expand("<results>/{file}", file=[*PAGE_FILES, *FIGURE_FILES]),
        expand("<results>/figures/{name}.rst", name=SHOWN_FIGURES),
        claims="<results>/claims.json",
        options=step(
            "ictd.report.notebook",
            notebook=ROOT / "report/report.ipynb",
            documents=DOCUMENTS,
            parameters={"results": str(RESULTS), "figures": SHOWN_FIGURES},
            other_settings=", ".join(differences(PAPER_SETTINGS, OWN_SETTINGS)),
        ),
    output:
        executed="<results>/report.ipynb",
        page=report(
            "<results>/report.html",
            category="1. Report",
            labels={"report": "In-context TD: claims and results"},
        ),
    pathvars:
        job="notebook",
    localrule: True
    conda:
        f"{ENVS}/report.yaml"


# The article shows the paper's part and all studies, which this rule runs.
use rule step as article with:
    input:
        results=[
            *expand("<results>/{file}", file=["claims.json", "theory/claims.json", "numbers.csv"]),
            *expand("<results>/tables/{name}.csv", name=QUOTED_TABLES),
            *expand("<results>/figures/{name}.svg", name=SHOWN_FIGURES),
            *expand("<results>/{study}/{file}", study=STUDIES, file=["claims.json", "numbers.csv"]),
            *expand("<results>/{study}/{kind}", study=STUDIES, kind=["figures", "tables"]),
        ],
        options=step(
            "ictd.report.article",
            source=ROOT / "report/article.typ",
            bibliography=ROOT / "report/references.bib",
            documents=[ROOT / f"docs/{name}.md" for name in ("results", "theory")],
            folder=RESULTS,
            studies=STUDIES,
            other_settings=", ".join(differences(SETTINGS, OWN_SETTINGS)),
        ),
    output:
        article=report(
            "<results>/article.pdf",
            category="1. Report",
            labels={"report": "Article"},
        ),
    pathvars:
        job="article",
    localrule: True
    conda:
        f"{ENVS}/report.yaml"


use rule step as explore with:
    input:
        options=step("ictd.report.explore"),
    output:
        report(
            "<results>/explore.html",
            category="1. Report",
            labels={"report": "Pretrain in the browser"},
        ),
    pathvars:
        job="explore",
    localrule: True


use rule step as manifest with:
    input:
        # The report needs every other file of the manifest, except for the page that pretrains.
        expand("<results>/report.{ending}", ending=["html", "ipynb"]),
        "<results>/explore.html",
        options=step(
            "ictd.report.manifest",
            folder=RESULTS,
            files=RESULT_FILES,
            pages=REPORT_FILES,
            settings=PAPER_SETTINGS,
        ),
    output:
        "<results>/manifest.json",
    pathvars:
        job="manifest",
    localrule: True
    conda:
        f"{ENVS}/pretrain.yaml"
