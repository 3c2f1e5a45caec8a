"""Several processes that compute together: each joins by saying where the first is, or as the cluster has it."""

from typing import Any

from pfbr.checks import checked_count, shortened
from pfbr.errors import InputError, PfbrError


def join(coordinator: str | None = None, processes: int | None = None, process: int | None = None) -> None:
    """Make this process number `process` of `processes`, before JAX has computed anything; the first, number 0, listens
    at `coordinator`, HOST:PORT. Without arguments SLURM, Open MPI or Kubernetes is asked, as JAX knows them.

    From then on `mesh="all"` has the devices of all processes, and every process must make the same calls.
    """
    import jax

    given: dict[str, Any] = {}
    if (coordinator, processes, process) != (None, None, None):
        if coordinator is None or processes is None or process is None:
            raise InputError("say all three, `coordinator`, `processes` and `process`, or none of them.")
        host, _, port = str(coordinator).rpartition(":")
        if not host or not port.isdigit():
            raise InputError(f"`coordinator` must be HOST:PORT, such as 10.0.0.7:9911; got {shortened(coordinator)}.")
        processes = checked_count("processes", processes, least=1, why="how many there are")
        process = checked_count("process", process, least=0, why="the number of this one, from 0")
        if process >= processes:
            raise InputError(f"`process` must lie below `processes`, {processes}; got {process}.")
        given = {"coordinator_address": coordinator, "num_processes": processes, "process_id": process}
    try:
        jax.distributed.initialize(**given)
    except (RuntimeError, ValueError) as error:
        raise PfbrError(
            f"the processes could not be joined: {error} Join before anything is computed; give coordinator, processes "
            "and process where no cluster manager tells them."
        ) from None
