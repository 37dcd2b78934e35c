import json

from uringloop._core.kernel.probe import SWITCHES, refusal
from uringloop.inspect.doctor import FEATURES, as_dict, diagnose


def test_the_diagnosis_agrees_with_the_probe() -> None:
    report = diagnose()
    assert report.usable == (refusal() is None)
    assert bool(report.cause) != report.usable
    assert report.exit_code == (0 if report.usable or report.chosen else 1)


def test_every_switch_is_explained() -> None:
    assert set(FEATURES) == set(SWITCHES)
    assert [feature.name for feature in diagnose().features] == list(FEATURES)


def test_the_diagnosis_can_be_written_as_json() -> None:
    assert set(json.loads(json.dumps(as_dict(diagnose())))["features"]) == set(FEATURES)
