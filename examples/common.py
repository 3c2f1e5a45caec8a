"""What the scripts share: a table of numbers, and the settings of `main` as options of a command."""

import argparse
import csv
import inspect
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np


def table(name: str) -> dict[str, np.ndarray]:
    """The columns of data/NAME.csv, numbers as float32, dates as they are written."""
    with (Path(__file__).parent / f"data/{name}.csv").open(encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    columns = dict(zip(head, zip(*rows, strict=True), strict=True))
    return {key: np.array(values, "M8" if "-" in values[0] else np.float32) for key, values in columns.items()}


def command_line(main: Callable[..., dict]) -> None:
    """Run `main` and print what it found, with the CPU seconds that it took."""
    parser = argparse.ArgumentParser(description=main.__globals__["__doc__"].split(".")[0])
    for name, setting in inspect.signature(main).parameters.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(setting.default), default=setting.default)
    begun = time.process_time()
    for name, value in main(**vars(parser.parse_args())).items():
        print(f"{name}: {value}")
    print(f"CPU seconds, compilation included: {time.process_time() - begun:.0f}")
