"""Result files and the command line of the steps."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ictd.pipeline.storage import join_arrays, load_arrays, load_named, naming, paired, replacing, save_arrays, stacked
from ictd.report.html import table


def test_arrays_come_back_and_have_the_same_bytes(tmp_path):
    arrays = {"a": np.arange(6.0).reshape(2, 3), "b": np.array([1, 2], np.uint8)}
    save_arrays(tmp_path / "x/one.npz", **arrays)
    os.utime(tmp_path / "x/one.npz", (0, 0))
    save_arrays(tmp_path / "y/x/one.npz", **arrays)
    assert (tmp_path / "x/one.npz").read_bytes() == (tmp_path / "y/x/one.npz").read_bytes()
    save_arrays(tmp_path / "x/two.npz", **arrays)
    loaded = load_named(tmp_path / "x/one.npz", "b", "a")
    np.testing.assert_array_equal(loaded["a"], arrays["a"])
    joined, _ = join_arrays([tmp_path / "x/one.npz", tmp_path / "x/two.npz"], "a", "b")
    assert joined.shape == (4, 3)


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("old")
    with pytest.raises(RuntimeError), replacing(path) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["table.csv"]


def test_missing_damaged_and_foreign_files_are_named(tmp_path):
    with pytest.raises(ValueError, match=r"gone\.npz is missing; run snakemake"):
        load_arrays(tmp_path / "gone.npz", "a")
    save_arrays(tmp_path / "whole.npz", a=np.arange(1000))
    with pytest.raises(ValueError, match="has no array 'b'"):
        load_arrays(tmp_path / "whole.npz", "b")
    (tmp_path / "cut.npz").write_bytes((tmp_path / "whole.npz").read_bytes()[:500])
    with pytest.raises(ValueError, match=r"cut\.npz cannot be used"):
        load_arrays(tmp_path / "cut.npz", "a")
    np.savez(tmp_path / "pickled.npz", a=np.array([{}], dtype=object))
    with pytest.raises(ValueError, match=r"pickled\.npz cannot be used"):
        load_arrays(tmp_path / "pickled.npz", "a")


def test_a_damaged_head_is_no_lack_of_memory_and_the_reverse(tmp_path):
    save_arrays(tmp_path / "head.npz", a=np.arange(1000))
    content = (tmp_path / "head.npz").read_bytes()
    assert content.count(b"(1000,), }" + b" " * 12) == 1
    (tmp_path / "head.npz").write_bytes(content.replace(b"(1000,), }" + b" " * 12, b"(1000000000000000,), }"))
    with pytest.raises(ValueError, match=r"head\.npz cannot be used: array 'a' is not as long as it says"):
        load_arrays(tmp_path / "head.npz", "a")
    with pytest.raises(MemoryError), naming(tmp_path / "head.npz"):
        np.empty(10**17)


def test_what_is_stacked_or_paired_is_all_there_and_once():
    parts = [{"a": np.arange(3)}, {"a": np.arange(3, 6)}]
    np.testing.assert_array_equal(stacked(iter(parts), 2)["a"], [[0, 1, 2], [3, 4, 5]])
    for size in (1, 3):
        with pytest.raises(ValueError, match="zip"):
            stacked(iter(parts), size)
    names = [Path("a/5-30.json"), Path("a/3-30.json")]
    others = [name.with_suffix(".npz") for name in names]
    assert paired(names, others) == [*zip(names, others, strict=True)]
    for wrong in (others[:1], others[::-1], [Path("a/5-5.npz"), others[1]]):
        with pytest.raises(ValueError, match="give both the same names, each once"):
            paired(names, wrong)
    with pytest.raises(ValueError, match="files are named 5-30 5-30 and 5-30 5-30; give both"):
        paired(names[:1] * 2, [others[0], Path("b/5-30.npz")])


def test_a_step_answers_bad_input_in_one_sentence(tmp_path):
    command = [sys.executable, "-m", "ictd.steps", "unrolls", "--env", "boyan", "--states", "3", "--batch-size", "4"]
    command += ["--discount", "0.9", "--rollout-steps", "5", "--tasks", str(tmp_path / "gone.npz")]
    done = subprocess.run([*command, "--output", str(tmp_path / "out.npz")], capture_output=True, text=True)
    assert done.returncode == 1
    *log, last = done.stderr.splitlines()
    assert last == f"error: {tmp_path}/gone.npz is missing; run snakemake to make it."
    assert "python -m ictd.steps unrolls --env boyan" in log[0] and "numpy" in log[1]
    assert not (tmp_path / "out.npz").exists()


def test_html_numbers_have_four_digits_or_a_power_of_ten():
    numbers = [1.23456, 12345.6, 3e53, float("nan"), 7]
    text = table(pd.DataFrame({f"c{i}": [number] for i, number in enumerate(numbers)}))
    assert re.findall(r'<td class="number".*?>(.*?)</td>', text) == ["1.235", "12,346", "3e+53", "", "7"]


def test_html_tables_escape_text():
    import pandas as pd

    made = table(pd.DataFrame({"<a>": ["x & y", "fails: <b>"], "number": [1.23456789, 2.0]}))
    assert "&lt;a&gt;" in made and "x &amp; y" in made and ">fails: &lt;b&gt;</td>" in made
    assert ">1.235</td>" in made
