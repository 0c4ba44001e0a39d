"""The paper's figures, and learning curves beside them.

Figures 1, 5, 7 and 10 are ``msve_curves``, 2, 4, 6 and 9 ``weight_maps``, 3 and 8 ``environment_diagrams``.
"""

from importlib.util import find_spec

from ictd.extras import missing_extra

# Importing matplotlib takes long, and not every module of this package needs it.
if find_spec("matplotlib") is None:
    raise missing_extra("report", "matplotlib")
