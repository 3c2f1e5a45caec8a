"""Streams by key on Spark, for real: local mode, two workers, a thousand keys, and a kill in the middle.

The extra `spark` is not in the environment of the other tests: it is installed into one of its own (`.venv-spark`),
unless PFBR_SPARK_PYTHON names an interpreter that has it. Where that cannot be, these tests say so loudly.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import pfbr
from pfbr.errors import InputError, PfbrError
from pfbr.scale import spark
from pfbr.scale.spark_work import Work
from tests.conftest import CHEAP_COMPILATION
from tests.scale.walk import Walk, rows

MODEL, N, KEYS, LENGTH, FILES = Walk(), 16, 1000, 50, 5
LATE, BAD = 7, 11  # a stream with a late row, and one with an impossible one


@pytest.fixture(scope="module")
def python(root):
    """An interpreter with pyspark and a Java."""

    def left_out(why):
        message = f"THE TESTS OF pfbr.scale.spark WERE LEFT OUT: {why}"
        warnings.warn(message, stacklevel=2)
        pytest.skip(message)

    if shutil.which("java") is None:
        left_out("there is no Java")
    named = os.environ.get("PFBR_SPARK_PYTHON")
    if named:
        return named
    own = root / ".venv-spark"
    if not (own / "ready").exists():
        for command in (
            [sys.executable, "-m", "venv", str(own)],
            [
                str(own / "bin/python"),
                "-m",
                "pip",
                "install",
                "-q",
                "--require-hashes",
                "-r",
                "requirements-spark.lock",
            ],
        ):
            ended = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=1800)
            if ended.returncode:
                left_out(f"{' '.join(command[:4])} … failed: {ended.stderr[-300:]}")
        (own / "ready").touch()
    return str(own / "bin/python")


@pytest.fixture(scope="module")
def table():
    """Rows of all streams, and the file that each comes in: ten rows a stream in each of five."""
    frame = pd.DataFrame(rows(KEYS, LENGTH, 5))
    place = frame.groupby("sensor").cumcount()
    frame["file"] = place // (LENGTH // FILES)
    frame.loc[(frame["sensor"] == LATE) & (place == 12), "file"] = 3  # a file too late
    frame.loc[(frame["sensor"] == BAD) & (place == 20), "y"] = -99.0
    return frame


@pytest.fixture(scope="module")
def source(table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("source")
    for number in range(FILES):
        part = table[table["file"] == number].drop(columns="file").sample(frac=1.0, random_state=number)
        part.to_parquet(folder / f"part-{number}.parquet", index=False)
        os.utime(folder / f"part-{number}.parquet", (1e9 + number, 1e9 + number))  # Spark goes by age
    return folder


@pytest.fixture(scope="module")
def by_panel(table):
    """What a panel makes of them in order of time; in it every stream reports once a call."""
    ordered = table[~((table["sensor"] == BAD) & (table["y"] < -50))].sort_values(["sensor", "t"])
    panel = pfbr.Panel(MODEL, KEYS, method="smc", key=3, num_particles=N, start=None, by_id=True)
    means = pd.Series(np.nan, index=ordered.index)
    turn = ordered.groupby("sensor").cumcount()
    for number in range(LENGTH):
        now = ordered[turn == number]
        told = panel.update(
            now[["y"]].to_numpy(), now["sensor"].tolist(), time=now["t"].to_numpy(), inputs=now[["push"]].to_numpy()
        )
        means[now.index] = told.mean()[:, 0]
    return ordered.assign(mean=means).set_index(["sensor", "t"]).sort_index(), panel


def started(python, root, how, source, folder):
    environment = os.environ | {
        "PYTHONPATH": f"{root / 'src'}:{root}",
        "XLA_FLAGS": f"{' '.join(CHEAP_COMPILATION)} --xla_cpu_multi_thread_eigen=false",
        "OMP_NUM_THREADS": "1",
    }
    command = [python, "-m", "tests.scale.spark_job", how, str(source), str(folder / "out"), str(folder / "checkpoint")]
    log = open(folder / "log", "a")  # noqa: SIM115 (the process writes there)
    return subprocess.Popen(command, cwd=root, env=environment, stdout=log, stderr=log, start_new_session=True)


def finished(job, folder):
    assert job.wait(timeout=1500) == 0, (folder / "log").read_text()[-3000:]
    return read(folder)


def read(folder) -> pd.DataFrame:
    """What was committed: of a stream, Spark's own list of files counts."""
    files = sorted(Path(folder / "out").glob("*.parquet"))
    log = folder / "out" / "_spark_metadata"
    if log.exists():
        said = "".join(part.read_text() for part in log.iterdir() if not part.name.startswith("."))
        files = [file for file in files if file.name in said]
    return pd.concat([pd.read_parquet(file) for file in files]).set_index(["sensor", "t"]).sort_index()


@pytest.mark.slow
def test_a_plain_frame_is_what_a_panel_makes_of_it(python, root, source, by_panel, tmp_path):
    found = finished(started(python, root, "plain", source, tmp_path), tmp_path)
    assert len(found) == KEYS * LENGTH
    wrong = found[found["error"].notna()]
    assert len(wrong) == 1
    assert "cannot happen" in wrong["error"].iloc[0]
    expected, panel = by_panel
    fine = found[found["error"].isna()]
    assert fine.index.equals(expected.index)
    off = np.abs(fine["mean_x_0"] - expected["mean"]).groupby("sensor").max()
    # the same random numbers, compiled differently: a stream is the same until rounding first picks another ancestor
    assert np.mean(off < 1e-4) > 0.95
    last = fine.groupby("sensor").last()
    assert (last["stage"].drop(BAD) == LENGTH).all()
    same = off < 1e-4
    evidence = np.array([panel.log_evidence(name) for name in last.index])
    np.testing.assert_allclose(last["log_evidence"][same], evidence[same], atol=0.01)
    by_sessions = sessions(expected, range(100, 160))
    ours = fine.loc[by_sessions.index]
    for name, column in (("mean", "mean_x_0"), ("std", "std_x_0"), ("log_evidence", "log_evidence")):
        # other random numbers, the same law: streams differ by chance alone, four standard errors at the most
        gap = (ours[column] - by_sessions[name]).groupby("sensor").mean()
        assert abs(gap.mean()) < 4 * gap.std() / len(gap) ** 0.5
        assert gap.std() > 0


def sessions(table, names) -> pd.DataFrame:
    """What sessions of their own make of some streams, one observation after another."""
    told = {}
    for name in names:
        own = table.loc[name]
        session = pfbr.Session(MODEL, method="smc", key=7000 + name, num_particles=N, start=own.index[0])
        for time_of, row in own.iterrows():
            posterior = session.update([row["y"]], time=time_of, inputs=[row["push"]])
            told[name, time_of] = (posterior.mean()[0], posterior.std()[0], session.log_evidence)
    found = pd.DataFrame.from_dict(told, orient="index", columns=["mean", "std", "log_evidence"])
    return found.set_index(pd.MultiIndex.from_tuples(told, names=["sensor", "t"]))


@pytest.mark.slow
def test_a_job_that_was_killed_goes_on_as_if_nothing_had_been(python, root, source, by_panel, tmp_path):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    whole.mkdir(), broken.mkdir()
    unbroken = finished(started(python, root, "stream", source, whole), whole)
    job = started(python, root, "stream", source, broken)
    deadline = time.monotonic() + 1200
    while not (broken / "checkpoint/commits/1").exists():  # two batches are done, the third is on its way
        assert job.poll() is None, (broken / "log").read_text()[-3000:]
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.killpg(job.pid, signal.SIGKILL)  # Java and all workers
    job.wait()
    assert not (broken / "checkpoint/commits" / str(FILES - 1)).exists()
    again = finished(started(python, root, "stream", source, broken), broken)
    pd.testing.assert_frame_equal(again, unbroken)  # to the last bit; nothing lost, nothing counted twice
    assert len(again) == KEYS * LENGTH
    late = again[again["error"].notna()].loc[LATE]
    assert "larger `undo`" in late["error"].iloc[0]
    expected, _ = by_panel
    others = again[again["error"].isna()].drop([LATE, BAD], level=0)
    off = np.abs(others["mean_x_0"] - expected["mean"].loc[others.index]).groupby("sensor").max()
    assert np.mean(off < 1e-4) > 0.95
    assert (others.groupby("sensor")["stage"].last() == LENGTH).all()


def test_what_is_no_frame_of_spark_is_refused():
    with pytest.raises((InputError, PfbrError)):
        spark.updates(pd.DataFrame({"y": [1.0]}), MODEL, by="s", time="t", observation="y")


def test_columns_are_looked_for():
    class Frame:
        columns = ("sensor", "t", "y")
        isStreaming = False  # noqa: N815 (Spark's name)

    assert spark._names(Frame(), {"by": "sensor", "time": "t", "observation": ["y"], "inputs": None})["inputs"] == []
    with pytest.raises(InputError, match="names the column 'z'"):
        spark._names(Frame(), {"by": "sensor", "time": "t", "observation": "z"})
    with pytest.raises(InputError, match="`time` must name a column"):
        spark._names(Frame(), {"by": "sensor", "time": None, "observation": "y"})


def test_rows_of_one_time_are_put_in_order_of_their_values():
    """Whatever order Spark brings them in, so that a repeated batch gives the same bytes."""
    names = {"by": ("sensor",), "time": ("t",), "observation": ("y",), "inputs": ("push",)}
    settings = spark.KeyedSettings(method="smc", num_particles=N)
    work = Work(MODEL, settings, spark.Answers(MODEL), names)
    frame = pd.DataFrame({"sensor": "a", "t": [1.0, 2.0, 2.0], "y": [0.1, None, 0.3], "push": 0.0})
    content, told = work.update(("a",), None, [frame])
    again, _ = work.update(("a",), None, [frame.iloc[[2]], frame.iloc[[0, 1]]])
    assert again == content
    assert list(told.columns[:3]) == ["sensor", "t", "mean_x_0"]
    assert told["log_predictive"].tolist()[2] == 0  # NaN comes last, and adds nothing
