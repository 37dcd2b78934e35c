"""Every file is where a newcomer looks for it, and says at its top what it is."""

from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
PACKAGE = PROJECT / "uringloop"

# Rooms of tests/ whose files mirror no source file.
OWN_ROOMS = {"meta", "models", "stress", "regressions", "integrations", "tls"}


def name_of(path: Path) -> str:
    return str(path.relative_to(PROJECT))


def mirrored(test: Path) -> list[Path]:
    """The places where the source of tests/<room>/test_<file>.py may be; a room may be one source file."""
    *room, file = test.relative_to(PROJECT / "tests").parts
    name = file.removeprefix("test_").removesuffix(".py")
    places = [PACKAGE.joinpath(*room), PROJECT.joinpath(*room)]
    if room:
        places.append(PACKAGE.joinpath(f"_{room[0]}", *room[1:]))
    found = [place / f"{name}{kind}" for place in places for kind in (".py", ".pyx", ".c", "")]
    return (
        found
        + [place / name / "__init__.py" for place in places]
        + [place / f"__{name}__.py" for place in places]
        + [place.with_suffix(".py") for place in places]
    )


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.pyx")), ids=name_of)
def test_compiled_module_has_a_declaration_and_a_header(path: Path) -> None:
    assert path.with_suffix(".pxd").exists(), "what other modules cimport belongs to a .pxd"
    assert path.read_text().startswith(("# ", '"""')), "the first line says what the module owns"


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.pyi")), ids=name_of)
def test_stub_has_a_compiled_module(path: Path) -> None:
    assert path.with_suffix(".pyx").exists() or path.with_suffix(".c").exists()


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=name_of)
def test_python_module_has_a_header(path: Path) -> None:
    assert path.read_text().startswith(('"""', "# ")) or not path.read_text().strip()


@pytest.mark.parametrize("path", sorted((PROJECT / "tests").rglob("test_*.py")), ids=name_of)
def test_test_file_mirrors_a_source_file(path: Path) -> None:
    if path.relative_to(PROJECT / "tests").parts[0] in OWN_ROOMS:
        return
    places = mirrored(path)
    assert any(place.exists() for place in places), f"none of {[name_of(place) for place in places]}"
