"""The results of the paper's part, for the functions that decide claims and make figures, tables and numbers."""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import pandas as pd
import yaml

from ictd.pipeline.grid import CELL, evaluation_envs, main_setting
from ictd.report import part
from ictd.report.claim import as_records
from ictd.report.paper import claims, figures, tables, theory_claims, views
from ictd.report.paper.sentences import Sentence, decide, load_sentences
from ictd.report.tables import load_tables
from ictd.storage import load_json

NORMS = "looped_norm", "separate_norm"
MODULES = [claims, theory_claims, tables, views, figures]


@dataclass
class Results:
    """Results of the paper's part.

    Parameters
    ----------
    folder : Path of the results
    metrics, theory : dict of the tables in the folders ``metrics`` and ``theory``, by their names
    elsewhere : dict of tables of unseen tasks, by the further environments of evaluation and by their names
    settings, schema : dict, the settings of the run, and their JSON schema
    sentences : list of the paper's sentences on its experiments
    """

    folder: Path
    metrics: dict[str, pd.DataFrame]
    theory: dict[str, pd.DataFrame]
    elsewhere: dict[str, dict[str, pd.DataFrame]]
    settings: dict
    schema: dict
    sentences: list[Sentence]

    @property
    def main(self) -> tuple[str, int, int]:
        """Environment, and numbers of states and layers, of the main setting."""
        return tuple(main_setting(self.settings).values())

    @property
    def discount(self) -> float:
        """The discount factor, gamma."""
        return self.settings["discount"]

    @property
    def evaluated_on(self) -> list[str]:
        """The environments of the unseen tasks; claims are about the first."""
        return evaluation_envs(self.settings)

    @cached_property
    def claims(self) -> list[dict]:
        """Records of all claims, which are decided and saved before tables, numbers and figures are made."""
        return load_json(self.folder / "claims.json")

    @property
    def on_theory(self) -> list[dict]:
        """Records of the claims on the theory, which have a section of the paper."""
        return [claim for claim in self.claims if claim["section"]]

    @property
    def on_experiments(self) -> list[dict]:
        """Records of the claims on the experiments."""
        return [claim for claim in self.claims if not claim["section"]]

    @cached_property
    def on_tasks_of_figures(self) -> list[dict]:
        """Records of the claims on the experiments, with the unseen tasks of the paper's figures."""
        of_figures = {"unseen_msve": self.metrics["msve"], "unseen_baselines": self.metrics["baselines"]}
        return as_records(part.decide(claims, replace(self, metrics=self.metrics | of_figures)))

    @cached_property
    def decided(self) -> list[dict]:
        """Records of the paper's sentences, with their verdicts."""
        return decide(self.sentences, self.on_experiments, self.main, self.evaluated_on[0])


def load(folder: Path, settings: dict, sentences: Path, schema: Path) -> Results:
    """Read the tables of a run, and the paper's sentences."""
    metrics, theory = (load_tables(sorted(folder.glob(f"{kind}/*.csv"))) for kind in ("metrics", "theory"))
    # Without the paper's algorithms there are no expected updates at pretrained weights.
    theory.setdefault("pretrained", pd.DataFrame(columns=[*CELL, "position", "theta_td", *NORMS]))
    theory.setdefault("repeated", pd.DataFrame(columns=[*CELL, "layer", *NORMS]))
    described = yaml.safe_load(schema.read_text(encoding="utf-8"))
    _, *places = evaluation_envs(settings)
    elsewhere = {place: load_tables(sorted(folder.glob(f"elsewhere/{place}/*.csv"))) for place in places}
    return Results(folder, metrics, theory, elsewhere, settings, described, load_sentences(sentences))


def files(results: Results) -> dict[str, list[dict]]:
    """The claims on the theory, and the paper's sentences with their verdicts."""
    return {"theory/claims.json": results.on_theory, "sentences.json": results.decided}
