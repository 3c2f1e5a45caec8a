"""Streams by key on Apache Spark: one row of answers for each row, the posteriors as bytes in Spark's state store.

A plain frame is read from the prior on; a streaming one goes on, key by key, from where the last micro-batch left it,
and after a restart from Spark's own checkpoint. Spark commits state and progress together, and the same bytes and rows
give the same bytes: every row counts once, however often a batch is repeated.
"""

import functools
from collections.abc import Sequence
from typing import Any

from pfbr.checks import shortened
from pfbr.errors import InputError, PfbrError
from pfbr.inference.frame_trace import QUANTILES
from pfbr.models.base import Model
from pfbr.models.checks import checked_methods_of, checked_model
from pfbr.scale.answers import Answers
from pfbr.scale.keyed import FIRST, Keyed, KeyedSettings
from pfbr.scale.spark_work import Work, whole_stream

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def updates(
    frame: Any,
    model: Model,
    *,
    by: str | Sequence[str],
    time: str,
    observation: str | Sequence[str],
    inputs: str | Sequence[str] | None = None,
    method: Any = "auto",
    key: int = 0,
    num_particles: int = 64,
    history: int = 256,
    start: Any = FIRST,
    time_unit: str | None = None,
    undo: int = 0,
    quantiles: Sequence[float] = QUANTILES,
    also: Sequence[str] = (),
) -> Any:
    """A DataFrame, plain or streaming as `frame` is, with a row for each of its rows: the columns `by` and `time`, then
    `mean_NAME`, `std_NAME`, `q5_NAME` … of each unknown, `ess`, `flagged`, `log_predictive`, `log_evidence` (of the
    stream so far), what `also` names, `stage`, and `error`, null where a row was absorbed.

    Streams are told apart by `by`, and taken in order of `time` within a micro-batch. The stream with the id `name` has
    the key `fold_in(key, number)`, where the number comes from the id alone: it is stream `name` of a
    `Panel(…, by_id=True, start=None)`. A null observation was not seen; a row that cannot be used says why and changes
    nothing. A late row is put in its place as far back as `undo` goes, 0 unless told, and refused beyond. Other
    settings are those of a session.
    """
    types = _spark_types()
    names = _names(frame, {"by": by, "time": time, "observation": observation, "inputs": inputs})
    model = checked_methods_of(checked_model(model))
    answers = Answers(model, tuple(quantiles), tuple(also))
    settings = KeyedSettings(method, key, num_particles, history, start, time_unit, undo)
    Keyed(model, settings, answers)  # refuses here, and not in a worker
    fields = {field.name: field for field in frame.schema.fields}
    kept = [fields[name] for name in (*names["by"], *names["time"])]
    told = [types.StructField(name, types.DoubleType()) for name in answers.numbers]
    told += [
        types.StructField(name, types.BooleanType() if name == "flagged" else types.DoubleType())
        for name in answers.told
    ]
    told += [types.StructField("stage", types.LongType()), types.StructField("error", types.StringType())]
    if both := {one.name for one in kept} & {one.name for one in told}:
        raise InputError(f"the frame's column {both.pop()!r} is called as one of the results: rename it.")
    schema = types.StructType([types.StructField(one.name, one.dataType) for one in kept] + told)
    payload = _pickled(Work(model, settings, answers, {name: tuple(columns) for name, columns in names.items()}))
    used = dict.fromkeys(name for columns in names.values() for name in columns)
    grouped = frame.select(*[f"`{name}`" for name in used]).groupBy(*[f"`{name}`" for name in names["by"]])
    if not frame.isStreaming:
        return grouped.applyInPandas(functools.partial(whole_stream, payload), schema)
    if frame.sparkSession.conf.get(PROVIDER, "") != ROCKS:
        raise InputError(f"a streaming frame needs Spark's RocksDB state store: set {PROVIDER} to {ROCKS}.")
    from pfbr.scale.spark_state import Posteriors

    return grouped.transformWithStateInPandas(Posteriors(payload), schema, "Append", "None")


def _names(frame: Any, asked: dict[str, Any]) -> dict[str, list[str]]:
    """The columns of each kind, which the frame must have."""
    columns = getattr(frame, "columns", None)
    if columns is None or not hasattr(frame, "isStreaming"):
        raise InputError(f"`frame` must be a DataFrame of Spark; got {shortened(frame)}. `pfbr.run` takes others.")
    names: dict[str, list[str]] = {}
    for what, given in asked.items():
        names[what] = [] if given is None else [given] if isinstance(given, str) else list(given)
        for name in names[what]:
            if name not in columns:
                raise InputError(f"`{what}` names the column {shortened(name)}; the frame has {', '.join(columns)}.")
    for what in ("by", "time", "observation"):
        if not names[what]:
            raise InputError(
                f"`{what}` must name a column: Spark keeps neither streams nor rows in an order of its own."
            )
    if len(names["time"]) > 1:
        raise InputError(f"`time` must name one column; got {names['time']}.")
    return names


def _pickled(work: Work) -> bytes:
    from pyspark import cloudpickle

    try:
        return cloudpickle.dumps(work)
    except Exception as error:  # whatever a user's model holds
        raise InputError(
            f"{type(work.model).__name__} cannot be sent to workers ({type(error).__name__}: {error}): define it in a "
            "module that they can import."
        ) from None


def _spark_types() -> Any:
    try:
        from pyspark.sql import types
    except ImportError:
        raise PfbrError("Spark is not installed: pip install 'pfbr[spark]' (it needs Java 17).") from None
    return types
