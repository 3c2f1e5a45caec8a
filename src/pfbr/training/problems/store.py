"""Problems and their clouds on disk, made once, piece by piece: training does not wait for them."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.errors import FileError
from pfbr.io import containers
from pfbr.io.files import make_directory
from pfbr.io.locks import held_directory
from pfbr.training.problems.clouds import SHARES, Clouds, draw_clouds
from pfbr.training.problems.problem import draw_problem
from pfbr.training.problems.term import Kind

PIECE = 50  # problems in a file: a kill loses that many, a few seconds of work


@partial(jax.jit, static_argnames=("d", "kinds", "num", "shares"))
def make_clouds(keys, *, d: int, kinds: tuple[Kind, ...], chosen, old, num: int, shares=SHARES) -> Clouds:
    """A problem and its clouds for every key, one after the other: only the kind at hand is then computed."""

    def one(key):
        problem_key, cloud_key = jax.random.split(key)
        problem = draw_problem(problem_key, d, chosen, old_kinds=old)
        return draw_clouds(cloud_key, problem, kinds, num, shares)

    return jax.lax.map(one, keys)


def ensure(
    directory: str | os.PathLike,
    kinds: tuple[Kind, ...],
    *,
    dims: tuple[int, ...],
    count: int,
    num_particles: int,
    seed: int = 0,
    tell: Callable[[str], None] = print,
) -> None:
    """`count` problems in each dimension, in files of the directory; those that are there are not made again."""
    make_directory(directory)
    all_kinds = jnp.arange(len(kinds))
    with held_directory(directory):
        for piece in range(-(-count // PIECE)):  # all dimensions grow together
            for d in dims:
                path = _path(directory, d, piece)
                if path.exists():
                    continue
                key = jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), d), piece)
                clouds = make_clouds(
                    jax.random.split(key, PIECE), d=d, kinds=kinds, chosen=all_kinds, old=all_kinds, num=num_particles
                )
                header = {"d": d, "piece": piece, "seed": seed, "kinds": [kind.__name__ for kind in kinds]}
                containers.write(path, "problems", header, containers.named_leaves(clouds))
                tell(f"{path.name}: {PIECE} problems")


def read(directory: str | os.PathLike, kinds: tuple[Kind, ...], d: int, *, num_particles: int) -> Clouds:
    """All problems of one dimension, along a leading axis, as NumPy arrays; problems without finite clouds left out."""
    all_kinds = jnp.arange(len(kinds))
    make = partial(make_clouds, d=d, kinds=kinds, chosen=all_kinds, old=all_kinds, num=num_particles)
    structure = jax.eval_shape(make, jax.random.split(jax.random.key(0), PIECE))
    pieces: list[Clouds] = []
    while (path := _path(directory, d, len(pieces))).exists():
        header, arrays = containers.read(path, "problems")
        if header["kinds"] != [kind.__name__ for kind in kinds]:
            raise FileError(f"{path} holds problems of other kinds: {header['kinds']}. Choose another directory.")
        pieces.append(jax.tree.map(np.asarray, containers.filled(structure, arrays, path)))
    if not pieces:
        raise FileError(f"{directory} holds no problems with {d} unknowns; make them first (`ensure`).")
    whole: Clouds = jax.tree.map(lambda *leaves: np.concatenate(leaves), *pieces)
    finite = np.isfinite(whole.points).all(axis=(1, 2, 3))
    return jax.tree.map(lambda leaf: leaf[finite], whole)


def _path(directory: str | os.PathLike, d: int, piece: int) -> Path:
    return Path(directory) / f"d{d:02d}-{piece:04d}.problems"
