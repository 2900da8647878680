"""Records: strict JSON, last one of a key counts, cut-off lines are survived."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from sumgp.errors import SumGPWarning
from sumgp_studies.experiments.records import Record, RecordFile


def record(dataset: int = 0, **changes) -> Record:
    base = Record("free_fall", 0.05, 0.3, dataset, "linearized", "integrated", "simulated", "converged", rmse=0.25)
    return replace(base, **changes)


def test_round_trip_and_strict_json():
    original = record(nlpd=float("inf"), coverage=float("nan"), coverages={"0.5": 0.4, "0.9": float("nan")}, warnings=["a"])
    line = original.to_json()
    assert json.loads(line, parse_constant=lambda text: pytest.fail(f"{text} is not strict JSON"))["nlpd"] is None
    back = Record.from_json(line)
    assert back == replace(original, nlpd=None, coverage=None, coverages={"0.5": 0.4, "0.9": None})
    assert "\n" not in line


def test_numpy_floats_are_plain_numbers():
    assert json.loads(record(rmse=np.float64(0.5)).to_json())["rmse"] == 0.5


def test_fields_of_later_versions_are_ignored_and_incomplete_records_refused():
    values = json.loads(record().to_json()) | {"later": 1}
    assert Record.from_json(json.dumps(values)) == record()
    del values["dataset"]
    with pytest.raises(ValueError, match="not a complete record"):
        Record.from_json(json.dumps(values))
    with pytest.raises(ValueError, match="JSON object"):
        Record.from_json("[1, 2]")


def test_last_record_of_a_key_counts(tmp_path):
    file = RecordFile(tmp_path / "deep" / "records.jsonl")
    assert file.read() == []
    file.append([record(0, rmse=1.0), record(1)])
    file.append([record(0, rmse=2.0)])
    assert file.read() == [record(0, rmse=2.0), record(1)]


def test_plug_in_and_simulated_records_have_keys_of_their_own(tmp_path):
    file = RecordFile(tmp_path / "records.jsonl")
    file.append([record(), record(uncertainty="plug-in"), record(data="real")])
    assert len(file.read()) == 3


def test_every_cut_of_the_file_is_survived(tmp_path):
    whole = "".join(record(i).to_json() + "\n" for i in range(3)).encode()
    ends = [i + 1 for i, byte in enumerate(whole) if byte == ord("\n")]
    for cut in range(len(whole) + 1):
        file = RecordFile(tmp_path / "records.jsonl")
        file.path.write_bytes(whole[:cut])
        complete = sum(end <= cut for end in ends)
        assert [r.dataset for r in file.read()] == list(range(complete))
        file.repair()
        file.append([record(7)])
        assert [r.dataset for r in file.read()] == [*range(complete), 7]


def test_unreadable_line_in_the_middle_is_reported(tmp_path):
    file = RecordFile(tmp_path / "records.jsonl")
    file.path.write_bytes(record(0).to_json().encode() + b"\n\x00\x00\xff\n" + record(1).to_json().encode() + b"\n")
    with pytest.warns(SumGPWarning, match="1 unreadable line"):
        assert [r.dataset for r in file.read()] == [0, 1]
