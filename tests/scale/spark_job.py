"""A Spark job with two workers, run as a process of its own: `spark_job.py plain|stream INPUT OUTPUT CHECKPOINT`.

`stream` takes the files of INPUT one by one, a micro-batch each, and can be killed at any moment.
"""

import os
import sys

os.environ["PYSPARK_PYTHON"] = sys.executable

from pyspark.sql import SparkSession

from pfbr.scale.spark import PROVIDER, ROCKS, updates
from tests.scale.walk import Walk

COLUMNS = {"by": "sensor", "time": "t", "observation": ["y"], "inputs": ["push"]}


def main(how: str, source: str, output: str, checkpoint: str) -> None:
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.adaptive.coalescePartitions.enabled", "false")  # two workers, however little there is
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "20000")
        .config(PROVIDER, ROCKS)
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    schema = spark.read.parquet(source).schema
    if how == "plain":
        frame = spark.read.parquet(source)
    else:
        frame = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(source)
    told = updates(frame, Walk(), **COLUMNS, method="smc", key=3, num_particles=16)
    if how == "plain":
        told.write.parquet(output)
    else:
        query = told.writeStream.format("parquet").option("path", output).option("checkpointLocation", checkpoint)
        query.trigger(availableNow=True).start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
