"""Where things are by the settings: always absolute."""

import os

import pytest

from penstock.settings.places import allowed_roots, database_url, lake_root
from penstock.settings.sections import Settings
from penstock.settings.storage_sections import DatabaseSettings, StorageSettings

LOCAL_ENGINE = os.getcwd()


@pytest.mark.parametrize(
    ("root", "place"),
    [
        ("", f"{LOCAL_ENGINE}/penstock-data/lake"),
        ("tables", f"{LOCAL_ENGINE}/tables"),
        ("/srv/tables/", "/srv/tables"),
        ("~/tables", os.path.expanduser("~/tables")),
        ("file:///srv/tables", "/srv/tables"),
        ("s3://bucket/lake/", "s3://bucket/lake"),
    ],
)
def test_the_lake_root_is_absolute(root: str, place: str) -> None:
    assert lake_root(Settings(storage=StorageSettings(root=root))) == place


def test_the_lake_and_the_database_follow_the_data_folder() -> None:
    settings = Settings(storage=StorageSettings(data="/srv/data"))
    assert lake_root(settings) == "/srv/data/lake"
    assert database_url(settings) == "sqlite:////srv/data/catalog.sqlite"


def test_allowed_roots_are_absolute() -> None:
    settings = Settings(storage=StorageSettings(allowed_roots=("more", "gs://bucket/")))
    assert allowed_roots(settings) == (f"{LOCAL_ENGINE}/more", "gs://bucket")


@pytest.mark.parametrize(
    ("url", "absolute"),
    [
        ("sqlite:///catalog.db", f"sqlite:///{LOCAL_ENGINE}/catalog.db"),
        ("sqlite:////srv/catalog.db", "sqlite:////srv/catalog.db"),
        ("postgresql://host/name", "postgresql://host/name"),
    ],
)
def test_the_database_url_has_an_absolute_path(url: str, absolute: str) -> None:
    assert database_url(Settings(database=DatabaseSettings(url=url))) == absolute
