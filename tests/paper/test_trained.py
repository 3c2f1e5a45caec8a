"""The trained methods that come with pfbr, by their recipes."""

import dataclasses
from importlib import resources

import numpy as np
import pytest

from pfbr.io import containers
from pfbr.models import LinearDynamics
from pfbr.paper.contract import Run
from pfbr.paper.digits.methods import recipe as digits_recipe
from pfbr.paper.experiments import gaussian, lds, logistic_meta, mixture, table1
from pfbr.paper.registry import find
from pfbr.paper.trained import obtain

RECIPES = [
    *(gaussian.recipe(dim) for dim in gaussian.FULL.dims),
    lds.recipe(2),
    *table1.recipes(10).values(),
    *mixture.recipes().values(),
    *(digits_recipe(name) for name in (logistic_meta.OPERATOR, logistic_meta.ZEROED)),
]


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.file)
def test_every_recipe_has_its_file(recipe):
    kind = "aesmc" if recipe.kind.startswith("aesmc") else "operator"
    with resources.as_file(resources.files(recipe.package) / f"{recipe.file}.pfbr") as path:
        header, arrays = containers.read(path, kind)
    assert header["seconds"] > 0
    assert arrays


def test_a_proposal_comes_back_by_the_names_of_its_arrays(tmp_path):
    """The shipped one, written again: the same arrays under the same names."""
    recipe, model = table1.recipes(10)["aesmc-mlp"], LinearDynamics.random(0, 10)
    made = obtain(Run(find("table1"), tmp_path / "run", quick=True), recipe, model)
    assert (made.seconds, made.origin) == (413.6, "comes with pfbr")
    leaves = containers.named_leaves(made.method)
    containers.write(tmp_path / "again.pfbr", "aesmc", {"kind": "aesmc-mlp", "width": 64, "seconds": 2.0}, leaves)
    again, seconds = recipe.read(model, tmp_path / "again.pfbr")
    assert seconds == 2.0
    for name, array in containers.named_leaves(again).items():
        np.testing.assert_array_equal(array, leaves[name])


def test_a_run_that_trains_again_trains_once(tmp_path, monkeypatch):
    trained = []

    def train(self, model, path, *, families, progress=False):
        trained.append(self.steps)
        with resources.as_file(resources.files(self.package) / f"{self.file}.pfbr") as shipped:
            path.write_bytes(shipped.read_bytes())

    monkeypatch.setattr("pfbr.paper.trained.Recipe.train", train)
    recipe = dataclasses.replace(lds.recipe(2), quick_steps=7)
    run = Run(find("lds"), tmp_path, quick=True, retrain=True)
    first, second = (obtain(run, recipe, LinearDynamics.random(0, 2)) for _ in range(2))
    assert trained == [7]
    assert first.origin == second.origin == "trained in this run, 7 steps"
