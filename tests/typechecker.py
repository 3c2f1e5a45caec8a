"""What checks annotations at run time: beartype, for which whole numbers are numbers, as for every type checker."""

from beartype import BeartypeConf, beartype

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
