# The last job of a study, ictd.report.study, which decides its claims, and makes its tables, figures and page.


def study_step(name):
    """The step's options, an input of the rule; the rule's other inputs are the `files` that `load` reads."""
    own = config[name]
    return step(
        "ictd.report.study",
        options_file=f"study/{name}",
        modules=(f"studies.{name}.results",),
        study=name,
        readme=ROOT / f"studies/{name}/README.md",
        settings=own | {"paper": PAPER_SETTINGS},
        other_settings=", ".join(differences(PAPER_SETTINGS | {name: own}, OWN_SETTINGS)),
        folder=RESULTS / name,
    )


def study_output(name):
    """The outputs of the rule, by their names."""
    folder = f"<results>/{name}"
    return {
        "claims": f"{folder}/claims.json",
        "quoted": f"{folder}/numbers.csv",
        "tables": directory(f"{folder}/tables"),
        "figures": directory(f"{folder}/figures"),
        "page": report(f"{folder}/{name}.html", category="4. Studies", labels={"study": name}),
    }
