# Content of Snakemake's report: figures and tables with their captions, in the order of report/titles.yaml.
TITLES = load_yaml(ROOT / "report/titles.yaml")


def shown(kind, name, ending, category):
    """Mark a figure or table for Snakemake's report; its menus sort by the first label."""
    position = list(TITLES[kind]).index(name) + 1
    return report(
        f"<results>/{kind}s/{name}.{ending}",
        caption=f"../../report/captions/{name}.rst",
        category=category,
        labels={"no": f"{position:02}", kind: TITLES[kind][name]},
    )


def figure(name):
    """A figure in both formats."""
    return [shown("figure", name, "png", "2. Figures"), f"<results>/figures/{name}.svg"]


def html(name):
    """A page with a table."""
    return shown("table", name, "html", "3. Tables")


def shown_cells(figures):
    """For each figure that shows at least one cell: the key that it varies, and its cells."""
    return {
        name: [vary, *map(str, cells(config, vary))] for name, vary in figures.items() if cells(config, vary)
    }


def notebook_params(notebook, results, documents=(), **parameters):
    """Files and parameters with which the step ictd.report.notebook makes a page from a notebook.

    The folder of the notebook has the name of the study, and has the captions in its folder ``captions``.  The notebook
    gets the folder of results and the other parameters.
    """
    study = {name: config[name] for name in STUDIES if name == notebook.parent.name}
    return {
        "options_file": f"notebook/{notebook.parent.name}",
        "documents": [*documents],
        "other_settings": ", ".join(differences(PAPER_SETTINGS | study, OWN_SETTINGS)),
        "notebook": notebook,
        "captions": notebook.parent / "captions",
        "parameters": {"results": str(results), **parameters},
    }
