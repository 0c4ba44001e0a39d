"""Result tables."""

import numpy as np
import pandas as pd
import pytest

from ictd.tables import load_table, load_tables, long_table, rows_with, save_table, save_tables

TABLE = pd.DataFrame({"algo": ["td", "td", "mc"], "seed": [0, 1, 0], "norm": [0.1, np.nan, 1 / 3]})


def test_tables_come_back_with_all_digits(tmp_path):
    save_table(tmp_path / "t.csv", TABLE)
    pd.testing.assert_frame_equal(load_table(tmp_path / "t.csv"), TABLE, check_exact=True)


def test_tables_come_back_by_name_with_their_parts_joined(tmp_path):
    save_tables(tmp_path, {"first": TABLE, "second": [TABLE[:1], TABLE[1:]]})
    tables = load_tables([tmp_path / "second.csv", tmp_path / "first.csv"])
    assert [*tables] == ["second", "first"]
    for table in tables.values():
        pd.testing.assert_frame_equal(table, TABLE)


def test_a_long_table_has_a_row_for_each_entry():
    norms = np.array([[0.1, np.nan], [1 / 3, 2]])
    table = long_table({"seed": [3, 5], "layer": [1, 2]}, {"norm": norms, "twice": 2 * norms}, algo="td")
    expected = pd.DataFrame({
        "algo": ["td"] * 4, "seed": [3, 3, 5, 5], "layer": [1, 2, 1, 2],
        "norm": [0.1, np.nan, 1 / 3, 2], "twice": [0.2, np.nan, 2 / 3, 4],
    })  # fmt: skip
    pd.testing.assert_frame_equal(pd.DataFrame(table), expected)


def test_tables_are_written_as_pandas_writes_them(tmp_path):
    numbers = np.array([[1 / 3, 1e-320, np.nan], [np.inf, -2.0, 1e22]])
    axes, arrays = {"i": [4, 5], "x": [0.0, 0.1, 1e-5]}, {"a": numbers, "count": np.arange(6).reshape(2, 3)}
    table = long_table(axes, arrays, text='comma, "quoted"', n=3)
    save_table(tmp_path / "t.csv", table, pd.DataFrame(table))
    expected = pd.concat([pd.DataFrame(table)] * 2).to_csv(index=False, lineterminator="\n")
    assert (tmp_path / "t.csv").read_text() == expected


def test_tables_with_other_columns_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"t\.csv has the columns a; a table has b\."):
        save_table(tmp_path / "t.csv", {"a": [1]}, {"b": [1]})
    with pytest.raises(ValueError, match="zip"):
        save_table(tmp_path / "t.csv", {"a": [1], "b": []})


@pytest.mark.parametrize(
    ("values", "rows"), [({"algo": "td"}, [0, 1]), ({"algo": "td", "seed": 1}, [1]), ({"algo": "mc", "seed": 1}, [])]
)
def test_rows_are_selected_by_values(values, rows):
    assert rows_with(TABLE, **values).index.tolist() == rows
