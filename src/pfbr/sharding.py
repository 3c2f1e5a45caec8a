"""Work that is divided along its leading axis among the devices of a mesh, those of other processes too.

`mapped(mesh, function, shared, each)` calls `function(shared, part)` on every device, with that device's part of
`each`, and no device waits for another: branches and loops go their own way. With several processes all of them make
the same calls, with the same arguments, and get the same answers.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from pfbr.checks import shortened
from pfbr.errors import InputError

ALL = "all"
MOST_PATIENCE = 3_600_000  # milliseconds that processes wait for each other
Tree = TypeVar("Tree")


def checked_mesh(mesh: Any) -> Mesh | None:
    """The mesh that a user gives; "all" stands for every device that JAX knows, in one axis; None for no sharding."""
    if mesh is None or isinstance(mesh, Mesh):
        return mesh
    if isinstance(mesh, str) and mesh == ALL:
        return Mesh(np.asarray(jax.devices()), ("devices",))
    raise InputError(
        f'`mesh` must be a jax.sharding.Mesh, as jax.make_mesh((4,), ("streams",)) makes one, or {ALL!r} for all '
        f"devices; got {shortened(mesh)}."
    )


def several_processes(mesh: Mesh | None) -> bool:
    """Whether devices of other processes take part."""
    return mesh is not None and mesh.is_multi_process


def leads(mesh: Mesh | None) -> bool:
    """Whether this process is the one that writes files and tells what happens."""
    return not several_processes(mesh) or jax.process_index() == 0


def num_devices(mesh: Mesh | None) -> int:
    return 1 if mesh is None else int(mesh.size)


def mapped(mesh: Mesh | None, function: Callable[[Any, Any], Any], shared: Any, each: Any) -> Any:
    """`function(shared, part)` on every device, the results side by side; without a mesh, one compiled call.

    `each` leads with a multiple of the number of devices (`padded` makes it so). The function is one of a module: it is
    told from others by what it is, so that a new closure would be compiled anew.
    """
    if mesh is None:
        return _at_once(function, shared, each)
    return _divided(mesh, function, _placed(mesh, shared, PartitionSpec()), _placed(mesh, each, _along(mesh)))


def on_host(tree: Tree) -> Tree:
    """As NumPy arrays, whichever device and process they are on."""
    return jax.tree.map(np.asarray, _everywhere(tree))


def on_one_device(tree: Tree) -> Tree:
    """As arrays of this process's first device, so that what is not divided can go on with them."""
    return jax.tree.map(lambda leaf: leaf.addressable_data(0) if eqx.is_array(leaf) else leaf, _everywhere(tree, True))


def from_first(mesh: Mesh | None, values: np.ndarray) -> np.ndarray:
    """The values that the first process has: clocks and files of processes differ, and their steps must not."""
    if not several_processes(mesh):
        return values
    from jax.experimental import multihost_utils

    _wait_for_all()
    # as bytes: JAX would make single precision of them
    raw = np.frombuffer(np.ascontiguousarray(values).tobytes(), np.uint8)
    told = np.asarray(multihost_utils.broadcast_one_to_all(raw), np.uint8)
    return np.frombuffer(told.tobytes(), values.dtype).reshape(values.shape)


def padded(tree: Tree, size: int) -> Tree:
    """The leading axis of every array filled up with copies of its first entry."""

    def pad(leaf: Any) -> Any:
        missing = size - len(leaf)
        if missing == 0:
            return leaf
        copies = (missing, *leaf.shape[1:])
        if isinstance(leaf, jax.Array):
            return jnp.concatenate([leaf, jnp.broadcast_to(leaf[:1], copies)])
        return np.concatenate([leaf, np.broadcast_to(leaf[:1], copies)])

    return jax.tree.map(pad, tree)


def dealt(size: int, mesh: Mesh | None) -> np.ndarray:
    """An order in which devices get entries in turn, as cards are dealt: where the last ones are padding, all have as
    much to do."""
    return np.arange(size).reshape(-1, num_devices(mesh)).T.reshape(-1)


def whole(number: int, mesh: Mesh | None) -> int:
    """The least multiple of the number of devices that holds so many."""
    return -(-number // num_devices(mesh)) * num_devices(mesh)


@eqx.filter_jit
def _at_once(function: Callable, shared: Any, each: Any) -> Any:
    return function(shared, each)


@eqx.filter_jit
def _divided(mesh: Mesh, function: Callable, shared: Any, each: Any) -> Any:
    arrays, rest = eqx.partition((shared, each), eqx.is_array)

    def one(own_shared, own_each):
        found = function(*eqx.combine((own_shared, own_each), rest))
        return eqx.filter(found, eqx.is_array)

    # the parts do not depend on each other: nothing is to be checked, and loops may end at different times
    return jax.shard_map(
        one, mesh=mesh, in_specs=(PartitionSpec(), _along(mesh)), out_specs=_along(mesh), check_vma=False
    )(*arrays)


def _along(mesh: Mesh) -> PartitionSpec:
    """The leading axis over all axes of the mesh."""
    return PartitionSpec(mesh.axis_names)


def _placed(mesh: Mesh, tree: Tree, spec: PartitionSpec) -> Tree:
    sharding = NamedSharding(mesh, spec)

    def place(leaf: Any) -> Any:
        if not eqx.is_array(leaf) and not isinstance(leaf, np.ndarray | np.generic):
            return leaf
        if isinstance(leaf, jax.Array) and leaf.sharding == sharding:
            return leaf
        if sharding.is_fully_addressable:
            return jax.device_put(leaf, sharding)
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            data = place(jax.random.key_data(leaf))
            return jax.random.wrap_key_data(data, impl=jax.random.key_impl(leaf))
        own = np.asarray(leaf)
        return jax.make_array_from_callback(own.shape, sharding, lambda index: own[index])

    return jax.tree.map(place, tree)


def _everywhere(tree: Any, always: bool = False) -> Any:
    """Each array whole on every device of its mesh; those that this process has anyway stay as they are."""
    if any(isinstance(leaf, jax.Array) and not leaf.is_fully_addressable for leaf in jax.tree.leaves(tree)):
        jax.block_until_ready(tree)
        _wait_for_all()

    def spread(leaf: Any) -> Any:
        if not isinstance(leaf, jax.Array) or (leaf.is_fully_addressable and not always):
            return leaf
        sharding = leaf.sharding
        if leaf.is_fully_replicated or not isinstance(sharding, NamedSharding):
            return leaf
        return jax.jit(_same, out_shardings=NamedSharding(sharding.mesh, PartitionSpec()))(leaf)

    return jax.tree.map(spread, tree)


def _wait_for_all() -> None:
    """Let every process come here: an exchange is given up after half a minute, and one of them may still compile."""
    from jax._src import distributed  # JAX has no public name for it; without it exchanges only have less patience

    client = getattr(distributed.global_state, "client", None)
    if client is not None:
        _meetings.append(None)
        client.wait_at_barrier(f"pfbr-{len(_meetings)}", timeout_in_ms=MOST_PATIENCE)


_meetings: list[None] = []  # so far; processes make the same calls, so that they agree on the number


def _same(leaf: jax.Array) -> jax.Array:
    return leaf
