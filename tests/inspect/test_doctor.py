import json
import resource
from pathlib import Path

import pytest

from uringloop._core.kernel.probe import SWITCHES, refusal
from uringloop.inspect import doctor
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


@pytest.mark.parametrize(("hard", "remedy"), [(1024, "LimitNOFILE="), (65536, "ulimit -n 65536")])
def test_a_low_limit_of_files_is_told_with_what_raises_it(
    hard: int, remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = resource.getrlimit
    monkeypatch.setattr(
        resource, "getrlimit", lambda kind: (1024, hard) if kind == resource.RLIMIT_NOFILE else real(kind)
    )
    assert [remedy in advice for advice in diagnose().advice if "1024 files" in advice] == [True]


def test_another_distribution_with_the_same_package_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, top in (("uringloop", "uringloop"), ("unrelated", "other")):
        info = tmp_path / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "top_level.txt").write_text(f"{top}\n")
    assert not any("overwrite" in advice for advice in diagnose().advice)
    monkeypatch.syspath_prepend(str(tmp_path))
    told = [advice for advice in diagnose().advice if "overwrite" in advice]
    assert len(told) == 1 and told[0].startswith("uringloop has installed")


def test_no_folder_for_the_inspector_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert diagnose().limits["folder of the inspector"].startswith("/")
    monkeypatch.setattr(doctor, "folders", lambda: [Path("/nowhere")])
    report = diagnose()
    assert report.limits["folder of the inspector"] == "none that is writable"
    assert any("XDG_RUNTIME_DIR" in advice for advice in report.advice)


def test_a_namespace_of_process_ids_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    here = diagnose().limits["process IDs"]
    monkeypatch.setattr(
        doctor, "MACHINES_PIDS", 0 if here == "the machine's" else doctor.os.stat("/proc/self/ns/pid").st_ino
    )
    assert diagnose().limits["process IDs"] != here
