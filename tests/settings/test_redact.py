"""Secrets stay out of sight."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.settings.redact import redact, redact_url
from penstock.settings.sections import Cluster


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:secret@host:5432/db", "postgresql://me:***@host:5432/db"),
        ("postgresql://me:se@cr:et@host/db", "postgresql://me:***@host/db"),
        (
            "postgresql://host/db?user=me&password=secret",
            "postgresql://host/db?user=me&password=***",
        ),
        (
            "postgresql://host/db?sslpassword=a&port=1",
            "postgresql://host/db?sslpassword=***&port=1",
        ),
        ("postgresql://me@host:5432/db", "postgresql://me@host:5432/db"),
        ("sqlite:////srv/catalog.sqlite", "sqlite:////srv/catalog.sqlite"),
    ],
)
def test_a_database_url_is_shown_without_passwords(url: str, shown: str) -> None:
    assert redact_url(url) == shown


@given(st.text(st.characters(codec="ascii", exclude_characters="*"), min_size=1))
def test_no_password_survives(password: str) -> None:
    assert redact_url(f"postgresql://me:{password}@host/db") == "postgresql://me:***@host/db"


def test_options_keep_their_names_only() -> None:
    assert redact("storage.options", {"aws_secret_access_key": "x"}) == {
        "aws_secret_access_key": "***"
    }


def test_other_values_are_shown_as_they_are() -> None:
    assert redact("server.port", 2333) == 2333


def test_what_looks_secret_in_a_clusters_conf_is_hidden() -> None:
    conf = {"spark.hadoop.fs.s3a.secret.key": "s3cret", "spark.ui.enabled": "false"}
    shown = redact("clusters", {"prod": Cluster(master="spark://x", conf=conf)})
    assert "s3cret" not in str(shown)
    assert "'spark.ui.enabled': 'false'" in str(shown)
    assert redact("clusters", '{"a": {"conf": "s3cret"}}') == "***"


def test_the_secret_of_the_console_s_client_is_hidden() -> None:
    assert redact("auth.oidc_client_secret", "very hidden") == "***"
    assert redact("auth.oidc_client_secret", "") == ""
