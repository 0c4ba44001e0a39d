"""Every rule of the project in this folder, as JSON: its step, modules and environment, as Snakemake has read them."""

import json
import sys
from pathlib import Path

from snakemake.api import SnakemakeApi
from snakemake.settings.types import ConfigSettings, OutputSettings, Quietness, ResourceSettings, StorageSettings


def main(configfiles: list[str]) -> None:
    """Write the rules."""
    with SnakemakeApi(OutputSettings(quiet={Quietness.ALL})) as api:
        workflow = api.workflow(
            resource_settings=ResourceSettings(cores=2),
            config_settings=ConfigSettings(configfiles=[Path(path) for path in configfiles]),
            storage_settings=StorageSettings(),
            snakefile=Path("Snakefile"),
        )._workflow
        found = {
            rule.name: {
                "step": rule.params.get("step"),
                "modules": [name for name in rule.params.keys() if name.startswith(("ictd", "studies"))],
                "environment": rule.conda_env and Path(str(rule.conda_env)).stem,
                "local": rule.name in workflow._localrules,
                "shell": rule.shellcmd,
            }
            for rule in workflow.rules
        }
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
