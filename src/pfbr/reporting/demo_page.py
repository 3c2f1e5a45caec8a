"""A demonstration's records to one HTML page that needs no network: draws what was measured and computes nothing."""

import base64
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from pfbr.judging.demo import regression, tracking, two_modes
from pfbr.judging.demo.record import DemoRecord
from pfbr.reporting.demo_scenes import LOOKS, regression_scene, tracking_scene
from pfbr.reporting.html import asset, drawn_parts, listed, write_document

LOG_RANGE = 9.0  # nats below the top of the density that a byte spans; contours of 99 % lie within 5 of it
TABLE_STAGES = (1, 5, 10, 20, 30)


def demo_page(directory: Path) -> Path:
    """Draw `index.html` in the directory that holds a demonstration's records, and return its path."""
    record = DemoRecord.load(directory, two_modes.NAME)
    scenes = [
        draw(DemoRecord.load(directory, name))
        for name, draw in {regression.NAME: regression_scene, tracking.NAME: tracking_scene}.items()
        if (directory / f"{name}.json").exists()  # a short demonstration has the first scene alone
    ]
    parts, charts = drawn_parts([part for scene in scenes for part in scene.parts], LOOKS)
    body, left = [asset("demo.html")], iter(parts)
    for scene in scenes:
        own = [next(left) for _ in scene.parts]
        head = f"<header><h2>{escape(scene.title)}</h2><p class='lead'>{escape(scene.lead)}</p></header>"
        body.append(f"<section class='scene'>{head}{listed(scene.findings)}{''.join(own)}</section>")
    return write_document(
        directory / "index.html",
        title="pfbr: Bayes' rule, one observation at a time",
        heading="Bayes’ rule, one observation at a time",
        lead="Each observation comes from one of two bells, centred at x₁ and at x₁ + x₂. Which bell is which cannot "
        f"be told, so the posterior has two modes. {record.settings['num_particles']} particles follow the stream as "
        "it comes; nothing is refitted.",
        body="\n".join(body),
        data={**charts, **_data(record)},
        styles=("page", "parts", "demo"),
        scripts=("page", "charts", "demo"),
    )


def table_stages(num_observations: int) -> list[int]:
    """The stages that a table shows: the paper's, as far as the stream goes, and its last."""
    return sorted({stage for stage in TABLE_STAGES if stage <= num_observations} | {num_observations})


def _data(record: DemoRecord) -> dict[str, Any]:
    """The record in as few characters as the screen can tell apart."""
    settings, arrays = record.settings, record.arrays
    top = arrays["log_density"].max(axis=(1, 2))
    density = _to_bytes(arrays["log_density"] - top[:, None, None])
    levels = 255 * (1 + (arrays["levels"] - top[:, None]) / LOG_RANGE)
    u, v = (float(value) for value in settings["unknown"])
    num_observations, num_particles = len(arrays["observations"]), int(settings["num_particles"])
    weights = {name: _rounded(arrays[f"{name}_weights"] * num_particles, 2) for name in ("pfbr", "smc")}
    return {
        "cells": settings["cells"],
        "reach": settings["reach"],
        "range": LOG_RANGE,
        "unknown": [u, v],
        "num_particles": num_particles,
        "density": base64.b64encode(density.tobytes()).decode("ascii"),
        "levels": _rounded(levels, 2),
        "points": {
            panel: _rounded(arrays[f"{name}_points"], 3)
            for panel, name in {"truth": "exact", "pfbr": "pfbr", "smc": "smc"}.items()
        },
        "weights": weights,
        "observations": _rounded(arrays["observations"][:, 0], 3),
        "scores": {name: _rounded(arrays[f"{name}_score"], 3) for name in ("exact", "pfbr", "smc", "prior")},
        "masses": {name: _rounded(arrays[f"{name}_mass"], 3) for name in ("truth", "pfbr", "smc")},
        "seconds": settings["seconds_per_update"],
        "table": table_stages(num_observations),
        "texts": {
            "panel-note": (
                f"Contours enclose {', '.join(f'{100 * mass:.0f} %' for mass in settings['contour_masses'])} "
                f"of the true posterior. The cross marks x = {_point(u, v)}, from which the stream was drawn; "
                f"{_point(u + v, -v)} explains it as well. Particles have weights, shown by their size."
            ),
            "mass-note": f"Share of the posterior near {_point(u, v)}; the mode near {_point(u + v, -v)} has the rest.",
            "observation-note": f"{num_observations} values from the bells at {_number(u)} and {_number(u + v)}.",
            "footer": (
                f"Method: {settings['operator']}. Seed {settings['seed']}, {num_particles} particles, scores "
                f"averaged over {settings['num_truth_draws']} draws of the exact posterior. The time of an update is "
                "that of the compiled loop on this machine, the fastest of a few runs."
            ),
        },
    }


def _to_bytes(below_top: np.ndarray) -> np.ndarray:
    return np.clip(np.round(255 * (1 + below_top / LOG_RANGE)), 0, 255).astype(np.uint8)


def _rounded(values: np.ndarray, digits: int) -> list:
    return np.round(values.astype(float), digits).tolist()


def _number(value: float) -> str:
    return f"{value:g}".replace("-", "−")


def _point(u: float, v: float) -> str:
    return f"({_number(u)}, {_number(v)})"
