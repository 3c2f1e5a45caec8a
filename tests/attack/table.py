"""All cases of the attack, group by group."""

import zlib

from tests.attack import commands, data_files, disk, models, observations, operator_files, session_files, settings
from tests.attack.case import Case

GROUPS: dict[str, list[Case]] = {
    module.GROUP: module.CASES
    for module in (models, observations, settings, operator_files, session_files, data_files, commands, disk)
}
CASES = [case for cases in GROUPS.values() for case in cases]
# One case in so many is in `make test`: more where a case costs nothing.
EVERY = {models.GROUP: 8, commands.GROUP: 6, observations.GROUP: 6}


def fast(case: Case) -> bool:
    return not case.slow and zlib.crc32(case.id.encode()) % EVERY.get(case.group, 3) == 0
