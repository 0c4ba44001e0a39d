# Functions for the last rule of a part, which makes the part's claims, numbers, tables, figures and page. A part is the
# paper's part (report.smk) or a study (studies/NAME/rules.smk).


def part_step(name, settings, folder, text, texts=(), documents=()):
    """The step's options, an input of the rule; the rule's other inputs are the `files` that `load` reads.

    `texts` are files of the project that `load` reads as well; `text` and `documents` are shown on the page.
    """
    shown = [key for key in SETTINGS if key in PAPER_SETTINGS or key == name]
    results = f"studies.{name}.results" if name in STUDIES else "ictd.report.paper.results"
    return step(
        "ictd.steps.report.results",
        options_file=f"results/{name}",
        modules=(results, "ictd.report.page"),
        part=name,
        results=results,
        settings=settings,
        other_settings=", ".join(differences({key: SETTINGS[key] for key in shown}, OWN_SETTINGS)),
        texts=[ROOT / text for text in texts],
        notebook=ROOT / "report/report.ipynb",
        text=ROOT / text,
        documents=[ROOT / document for document in documents],
        folder=folder,
    )


def part_output(folder, page, **marks):
    """The outputs of the rule, by their names; `marks` are those of the page in Snakemake's report."""
    # Snakemake looks for all files of a hosted workflow among the workflow's files.
    captions = os.path.abspath(folder / "captions.rst") if LOCAL else None
    figures = {"category": "2. Figures", "labels": {"figure": "{figure}"}, "caption": captions}
    return {
        "claims": folder / "claims.json",
        "numbers": folder / "numbers.csv",
        "tables": directory(folder / "tables"),
        "figures": report(directory(folder / "figures"), patterns=["{figure}.png"], **figures),
        "captions": folder / "captions.rst",
        "executed": folder / f"{page}.ipynb",
        "page": report(folder / f"{page}.html", **marks),
    }


def study_step(name):
    """The options of a study's last job."""
    settings = config[name] | {"paper": PAPER_SETTINGS}
    return part_step(name, settings, RESULTS / name, f"studies/{name}/README.md")


def study_output(name):
    """The outputs of a study's last job."""
    return part_output(RESULTS / name, name, category="3. Studies", labels={"study": name})
