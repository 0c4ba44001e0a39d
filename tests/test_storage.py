"""Result files are complete or absent; missing or damaged files give one sentence."""

import io
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from ictd.report.tables import load_sweep, load_table, load_tables, rows_with
from ictd.storage import (
    file_digest,
    join_arrays,
    load_arrays,
    load_json,
    long_table,
    replacing,
    save_arrays,
    save_json,
    save_table,
    save_tables,
    save_text,
)


def test_arrays_are_stored_with_reproducible_bytes(tmp_path):
    paths = [tmp_path / "x/one.npz", tmp_path / "x/two.npz"]
    for path in paths:
        save_arrays(path, a=np.arange(6.0).reshape(2, 3), b=np.array([1, 2], np.uint8))
    assert file_digest(paths[0]) == file_digest(paths[1])
    b, a = join_arrays(paths, "b", "a")
    assert a.tolist() == [[0, 1, 2], [3, 4, 5]] * 2 and b.dtype == np.uint8


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("old")
    with pytest.raises(RuntimeError), replacing(path) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["table.csv"]


def test_the_next_writer_removes_the_file_of_a_killed_one(tmp_path):
    code = "import sys, time\nfrom pathlib import Path\nfrom ictd.storage import replacing\n"
    code += "with replacing(Path(sys.argv[1])) as temporary:\n    temporary.write_text('half')\n"
    code += "    print('now', flush=True)\n    time.sleep(60)\n"
    target = tmp_path / "table.csv"
    process = subprocess.Popen([sys.executable, "-c", code, target], stdout=subprocess.PIPE)
    process.stdout.readline()
    process.kill()
    process.wait()
    assert not target.exists() and len(os.listdir(tmp_path)) == 1
    save_text(target, "whole")
    assert os.listdir(tmp_path) == ["table.csv"] and target.read_text() == "whole"


CONTENT = io.BytesIO()
np.savez(CONTENT, a=np.array([{}], dtype=object))
PICKLED = CONTENT.getvalue()


@pytest.fixture
def files(tmp_path):
    """A file of each kind, with the function that reads it."""
    save_arrays(tmp_path / "a.npz", a=np.arange(1000))
    save_json(tmp_path / "a.json", [1, 2])
    save_table(tmp_path / "a.csv", pd.DataFrame({"a": [1], "b": [2]}))
    return {"a.npz": lambda path: load_arrays(path, "a"), "a.json": load_json, "a.csv": load_table}


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        ("a.npz", lambda whole: PICKLED, "Object arrays cannot be loaded"),
        ("a.npz", lambda whole: whole[:3000] + b"x" + whole[3001:], "Bad CRC-32"),
        ("a.npz", lambda whole: whole.replace(b"a.npy", b"b.npy"), "it has no array 'a'"),
        ("a.csv", lambda whole: whole[:-1], "it ends in the middle of a line"),
    ],
)
def test_a_damaged_file_is_named_with_its_remedy(files, tmp_path, name, damage, message):
    path = tmp_path / name
    files[name](path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError) as raised:
        files[name](path)
    sentence = str(raised.value)
    assert sentence.startswith(f"{path} cannot be used: {message}") and "\n" not in sentence
    assert sentence.endswith(f"make it anew: rm {path}, then run snakemake as before.")


def test_a_missing_file_is_named(files, tmp_path):
    for name, load in files.items():
        with pytest.raises(ValueError, match=rf"^.*/gone-{name} is missing; run snakemake to make it\.$"):
            load(tmp_path / f"gone-{name}")


def test_tables_are_written_as_pandas_writes_them_and_read_with_all_digits(tmp_path):
    numbers = np.array([[1 / 3, 1e-320, np.nan], [np.inf, -2.0, 1e22]])
    axes, arrays = {"i": [4, 5], "x": [0.0, 0.1, 1e-5]}, {"a": numbers, "count": np.arange(6).reshape(2, 3)}
    table = pd.DataFrame(long_table(axes, arrays, text='comma, "quoted"', n=3))
    save_tables(tmp_path, {"first": table, "second": [table[:1], table[1:]]})
    text = table.to_csv(index=False, lineterminator="\n")
    assert {(tmp_path / f"{name}.csv").read_text() for name in ("first", "second")} == {text}
    for loaded in load_tables([tmp_path / "second.csv", tmp_path / "first.csv"]).values():
        pd.testing.assert_frame_equal(loaded, table, check_exact=True)
    assert rows_with(table, i=5, x=0.1).index.tolist() == [4]


def test_tables_with_other_columns_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"t\.csv has the columns a; a table has b\."):
        save_table(tmp_path / "t.csv", {"a": [1]}, {"b": [1]})


def test_a_sweep_has_the_settings_that_differ_beside_the_columns_of_the_table(tmp_path):
    for name, n in (("a", 3), ("b", 5)):
        save_json(tmp_path / name / "manifest.json", {"settings": {"states": [n], "seeds": 2, "theory": {"depth": n}}})
        save_table(tmp_path / name / "errors.csv", {"states": [n]})
    found = load_sweep([tmp_path / "a", tmp_path / "b"], "errors.csv")
    assert found.to_dict("list") == {"states": [3, 5], "settings.states": ["[3]", "[5]"], "theory.depth": [3, 5]}
