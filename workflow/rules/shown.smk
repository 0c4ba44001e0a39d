# Content of Snakemake's report: the figures and the pages that the package registers, with their titles.
FIGURES = registered("ictd.report.figures.report", "figure")
PAGES = registered("ictd.report.pages", "page")
# The figures of this configuration: a figure that varies a setting needs other values of the setting.
SHOWN_FIGURES = [name for name, (*_, named) in FIGURES.items() if cells(config, named.get("vary", "main"))]


def titled(kind, registry, name):
    """Labels of a figure or page; the menus of Snakemake's report sort by the first label."""
    return {"no": f"{list(registry).index(name) + 1:02}", kind: registry[name][0]}


def figures_of(job):
    """Names of the figures that a job draws."""
    return [name for name in SHOWN_FIGURES if FIGURES[name][1][0] == job]


def tables_of(job):
    """Tables that these figures show."""
    names = dict.fromkeys(table for name in figures_of(job) for table in FIGURES[name][1][1:])
    return expand("<results>/{table}.csv", table=names)


def files_of(job):
    """These figures in both formats, and their captions."""
    files = expand("<results>/figures/{name}.{ending}", name=figures_of(job), ending=["svg", "rst"])
    for name in figures_of(job):
        marks = {"category": "2. Figures", "labels": titled("figure", FIGURES, name)}
        # Snakemake looks for all files of a hosted workflow among the workflow's files.
        marks["caption"] = os.path.abspath(RESULTS / f"figures/{name}.rst") if LOCAL else None
        files += [report(f"<results>/figures/{name}.png", **marks)]
    return files


def drawing(job):
    """Options of a job that draws figures."""
    run = {key: config[key] for key in ("algos", "envs", "states", "depths", "discount")}
    return {
        "options_file": f"figures/{job}",
        "figures": figures_of(job),
        "run": run | {"env_options": config["readings"]["env_options"]},
        "folder": RESULTS / "figures",
    }


def html(name):
    """A page with a table, and its caption in it."""
    labels = titled("table", PAGES, name)
    return report(f"<results>/tables/{name}.html", category="3. Tables", labels=labels)
