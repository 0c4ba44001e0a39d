# The paper's part: its results and report; and what shows the results of all parts.
# Files that the manifest lists, relative to the folder of results; a folder stands for its files.
TABLE_FILES = expand("metrics/{table}.csv", table=[*TABLES, *UNSEEN_TABLES, "audit"])
TABLE_FILES += ELSEWHERE_TABLES + expand("theory/{table}.csv", table=THEORY_TABLES)
RESULT_FILES = ["claims.json", "sentences.json", "theory/claims.json", "numbers.csv", "tables", *TABLE_FILES]
RESULT_FILES += expand("{kind}/{cell}.npz", kind=["weights", "evaluation"], cell=sorted(CELLS))
RESULT_FILES += expand("baselines/{setting}.npz", setting=BASELINES)
REPORT_FILES = ["figures", "report.ipynb", "report.html", "explore.html"]
MANIFEST_FILES = [*RESULT_FILES, *REPORT_FILES]


use rule step as results with:
    input:
        files=expand("<results>/{file}", file=TABLE_FILES),
        options=part_step(
            "paper",
            PAPER_SETTINGS,
            RESULTS,
            "report/report.md",
            texts=["report/sentences.toml", "workflow/schemas/config.schema.yaml"],
            documents=["docs/method.md", "docs/theory.md"],
        ),
    output:
        "<results>/sentences.json",
        "<results>/theory/claims.json",
        **part_output(
            RESULTS, "report", category="1. Report", labels={"report": "In-context TD: claims and results"}
        ),
    pathvars:
        job="results",
    localrule: True
    conda:
        f"{ENVS}/report.yaml"


# The article shows the paper's part and all studies, which this rule runs.
use rule step as article with:
    input:
        results=[
            RESULTS / part / name
            for part in ["", *STUDIES]
            for name in ("claims.json", "numbers.csv", "tables", "figures")
        ],
        options=step(
            "ictd.steps.report.article",
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
        options=step(
            "ictd.steps.report.explore",
            page=ROOT / "report/explore/page.html",
            parts=[ROOT / "report/explore/page.css", *sorted(ROOT.glob("report/explore/*.js"))],
        ),
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
        expand("<results>/{file}", file=MANIFEST_FILES),
        options=step(
            "ictd.steps.report.manifest",
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
