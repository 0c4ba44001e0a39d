"""python envs/move.py FOLDER TARGET: move a virtual environment, in place of the one that is there."""

import sys
from pathlib import Path
from shutil import rmtree

folder, target = (Path(name).absolute() for name in sys.argv[1:])
replaced = target.with_name(f"{target.name}.old")
# Scripts contain the path of their Python.
for script in folder.glob("bin/*"):
    content = script.read_bytes()
    if bytes(folder) in content:
        script.write_bytes(content.replace(bytes(folder), bytes(target)))
rmtree(replaced, ignore_errors=True)
if target.exists():
    target.rename(replaced)
folder.rename(target)
rmtree(replaced, ignore_errors=True)
