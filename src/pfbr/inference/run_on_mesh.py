"""Many streams of one length on the devices of a mesh, each device with its share of them.

Where a step is mostly branches and loops, a device takes its streams one after the other: each goes its own way, and
the answer is the same to the last bit whatever the number of devices. Other methods take a device's streams together,
and the answer is the same to the last bit for as many streams a device, and to rounding for others.
"""

from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax.sharding import Mesh

from pfbr.inference.catching_up import row_at
from pfbr.inference.method import Method, Recorded, Stream, record
from pfbr.inference.panel.steps import mostly_branches, stream_key
from pfbr.inference.saved_parts import state_skeleton
from pfbr.inference.streams import Shared
from pfbr.models.base import Model
from pfbr.sharding import mapped, on_host, padded, whole
from pfbr.typing import Key


class _Streams(eqx.Module):
    numbers: Any
    rows: Stream


def record_on_mesh(mesh: Mesh, key: Key, method: Method, model: Model, streams: Stream, num_particles: int) -> Recorded:
    """Many streams (S, T, …); stream s has the key `fold_in(key, s)`, whichever device it is on."""
    rows = jax.tree.map(np.asarray, streams)
    number = rows.observations.shape[0]
    first = row_at(jax.tree.map(lambda leaf: leaf[0], rows), 0)
    skeleton = state_skeleton(method, model, num_particles, first)
    one_by_one = mostly_branches(key, method, model, skeleton, first)
    every = padded(_Streams(np.arange(number, dtype=np.int32), rows), whole(number, mesh))
    shared = Shared(key, method, model, num_particles)
    said = on_host(mapped(mesh, _one_by_one if one_by_one else _together, shared, every))
    return jax.tree.map(lambda leaf: leaf[:number], said)


def _recorded(shared: Shared, stream: _Streams) -> Recorded:
    own = stream_key(shared.key, stream.numbers)
    return record(own, shared.method, shared.model, stream.rows, shared.num_particles)


def _one_by_one(shared: Shared, streams: _Streams) -> Recorded:
    return jax.lax.map(lambda stream: _recorded(shared, stream), streams)


def _together(shared: Shared, streams: _Streams) -> Recorded:
    return jax.vmap(lambda stream: _recorded(shared, stream))(streams)
