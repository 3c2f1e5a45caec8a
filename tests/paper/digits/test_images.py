"""The sixes and eights that come with the package."""

import pytest

from pfbr.errors import InputError
from pfbr.paper.digits import load_digits


def test_the_package_holds_all_sixes_and_eights():
    train, test = load_digits("train"), load_digits("test")
    assert train.images.shape == (11769, 28, 28)
    assert test.images.shape == (1932, 28, 28)
    assert (int(train.labels.sum()), int(test.labels.sum())) == (5851, 974)  # eights, by the official counts
    assert not train.images.flags.writeable
    with pytest.raises(InputError, match="train, test"):
        load_digits("validation")
