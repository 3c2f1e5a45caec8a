"""A model from a few words, and a clear refusal for everything else."""

import sys

import numpy as np
import pytest

from pfbr.cli.spec import resolve
from pfbr.errors import FileError, InputError, ModelError
from pfbr.models import GaussianMean, GaussianMixture, LinearDynamics, LogisticRegression

OWN_MODEL = """
from pfbr.models import GaussianMean
import neighbour

class Mine(GaussianMean):
    pass

class Smaller(GaussianMean):
    def __init__(self):
        self.dim, self.prior_std, self.observation_std = 2, 1.0, 1.0

def make():
    return Mine(neighbour.DIM)

def spoiled():
    return 1 / 0

model = Mine(3)
number = 7
"""


@pytest.fixture
def own_file(tmp_path):
    (tmp_path / "neighbour.py").write_text("DIM = 4\n")
    file = tmp_path / "own.py"
    file.write_text(OWN_MODEL)
    return file


def test_built_in_names_with_their_settings():
    assert resolve("gaussian-mean:dim=8,observation_std=2.5") == GaussianMean(8, 1.0, 2.5)
    assert resolve("gaussian-mixture") == GaussianMixture()
    assert resolve("gaussian-mixture: prior_std=2, ") == GaussianMixture(prior_std=2.0)
    assert resolve("logistic-regression:dim=5") == LogisticRegression(5)


def test_a_random_linear_system_is_the_one_of_its_seed():
    model, expected = resolve("linear-dynamics:dim=3,seed=7,observation_std=0.5"), LinearDynamics.random(7, 3)
    np.testing.assert_array_equal(model.A, expected.A)
    np.testing.assert_array_equal(model.B, expected.B)
    assert (model.observation_std, model.transition_std) == (0.5, 1.0)


def test_a_linear_system_from_a_file(tmp_path):
    A, B = np.array([[0.9, 0.1], [0.0, 0.8]]), np.array([[1.0, 0.0]])
    np.savez(tmp_path / "system.npz", A=A, B=B, observation_std=0.3)
    model = resolve(f"linear-dynamics:system={tmp_path / 'system.npz'},prior_std=2")
    np.testing.assert_allclose(model.A, A)
    np.testing.assert_allclose(model.B, B)
    assert (model.observation_std, model.prior_std) == (0.3, 2.0)


@pytest.mark.parametrize(("attribute", "dim"), [("model", 3), ("Smaller", 2), ("make", 4)])
def test_a_model_of_ones_own(own_file, attribute, dim):
    assert int(resolve(f"{own_file}:{attribute}").dim) == dim


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("gausian-mixture", "Did you mean 'gaussian-mixture'?"),
        ("zzz", "Built in: gaussian-mean"),
        ("", "Built in: gaussian-mean"),
        ("gaussian-mean:dims=3", "Did you mean 'dim'?"),
        ("gaussian-mean:dim=three", "must be a whole number; got 'three'"),
        ("gaussian-mean:dim=0", "at least 1; got 0"),
        ("gaussian-mean:observation_std=-1", "positive and finite; got '-1'"),
        ("gaussian-mean:observation_std=nan", "positive and finite; got 'nan'"),
        ("gaussian-mean:dim", "not of the form key=value"),
        ("model.py", "Write model.py:NAME"),
    ],
)
def test_a_wrong_name_or_setting_is_refused(spec, said):
    with pytest.raises(InputError) as refusal:
        resolve(spec)
    assert said in str(refusal.value)


def test_a_wrong_file_or_attribute_is_refused(own_file):
    for spec, kind, said in [
        (f"{own_file.with_name('owm.py')}:model", FileError, "Did you mean 'own.py'?"),
        (f"{own_file}:modell", InputError, "Did you mean 'model'? Models it defines: Mine, Smaller, model."),
        (f"{own_file}:number", ModelError, "is of type int, not a model"),
        (f"{own_file}:Mine", ModelError, "could not be called without arguments"),
        (f"{own_file}:spoiled", ModelError, "ZeroDivisionError"),
    ]:
        with pytest.raises(kind) as refusal:
            resolve(spec)
        assert said in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [("import pfbr\n\nx = undefined\n", "line 3 fails when it is run: NameError"), ("x = (\n", "line 1 fails")],
)
def test_a_file_that_fails_names_the_line(tmp_path, text, said):
    file = tmp_path / "broken.py"
    file.write_text(text)
    with pytest.raises(ModelError) as refusal:
        resolve(f"{file}:x")
    assert said in str(refusal.value)


def test_a_damaged_system_is_refused(tmp_path):
    np.savez(tmp_path / "half.npz", A=np.eye(2))
    (tmp_path / "cut.npz").write_bytes((tmp_path / "half.npz").read_bytes()[:40])
    np.savez(tmp_path / "odd.npz", A=np.eye(2), B=np.eye(3))
    for name, kind, said in [
        ("none.npz", FileError, "there is no file"),
        ("half.npz", FileError, "lacks B; it holds A"),
        ("cut.npz", FileError, "cannot be read as .npz"),
        ("odd.npz", FileError, "`B` must have shape (k, 2)"),
    ]:
        with pytest.raises(kind) as refusal:
            resolve(f"linear-dynamics:system={tmp_path / name}")
        assert said in str(refusal.value)


def test_nothing_is_left_beside_a_file(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    path = tmp_path / "mine.py"
    path.write_text("from pfbr.models import GaussianMean\nmodel = GaussianMean(2)\n")
    resolve(f"{path}:model")
    assert [file.name for file in tmp_path.iterdir()] == ["mine.py"]
