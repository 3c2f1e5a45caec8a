"""A posterior in Spark's state store: read before a key's rows of a micro-batch, written after them."""

from collections.abc import Iterator
from typing import Any

from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, StructField, StructType

from pfbr.scale.spark_work import work_of

SCHEMA = StructType([StructField("posterior", BinaryType())])


class Posteriors(StatefulProcessor):
    def __init__(self, payload: bytes):
        self._payload = payload

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._held = handle.getValueState("posterior", SCHEMA)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802
        held = self._held.get() if self._held.exists() else None
        before = None if held is None else bytes(held[0])
        after, answers = work_of(self._payload).update(tuple(key), before, rows)
        if after is not None and after != before:
            self._held.update((after,))
        yield answers

    def close(self) -> None:
        pass
