"""The page of variational inference, from records alone."""

from pfbr.io.records import Measurement
from pfbr.paper.contract import Results, Run
from pfbr.paper.experiments.logistic_vi import TEST_ACCURACY, TEST_SCORE
from pfbr.paper.registry import draw, find

VI = find("logistic-vi")


def test_the_page_of_variational_inference_measures_the_distance_to_the_reference(tmp_path):
    run = Run(VI, tmp_path, quick=True)
    records, n = run.case("vi", images=1000), run.settings.num_particles
    for name, accuracy in (("pfbr", 0.986), ("svi", 0.97), ("truth", 0.984)):
        for visited in (1280, 2560):
            records.add(
                Measurement(name, m, visited, v, None, n) for m, v in ((TEST_ACCURACY, accuracy), (TEST_SCORE, 0.1))
            )
    told = VI.view(Results(tmp_path)).findings
    assert "+0.20 points" in told[0].text
    assert told[0].good
    assert draw(tmp_path).is_file()
