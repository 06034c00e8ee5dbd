"""What clients of Iceberg need to reach a table's files: where the store is, and credentials."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.catalog.catalog import Catalog
from penstock.errors import Unavailable

log = logging.getLogger(__name__)

PREFIXES = ("", "aws_")


@dataclass(frozen=True, slots=True)
class StorageAccess:
    """Properties of a client's file access.

    `credentials` are for what lies below `prefix`; empty where there are none to give.
    """

    prefix: str
    config: dict[str, str] = field(default_factory=dict)
    credentials: dict[str, str] = field(default_factory=dict)

    @property
    def is_secret(self) -> bool:
        return bool(self.credentials)


async def find_access(
    catalog: Catalog, location: str, *, may_write: bool, is_needed: bool = False
) -> StorageAccess:
    """The access to a table's location, for those who may read it.

    With `is_needed`, a failing issuer of credentials is an error: a client that came for nothing
    else has no use for the rest.
    """
    access = StorageAccess(f"{location}/", spell_options(catalog.lake.public_options()))
    if not location.startswith("s3://"):
        return StorageAccess(access.prefix)
    if catalog.vendor is None:
        return access
    try:
        found = await catalog.lake.run(catalog.vendor.vend, location, may_write)
    except Unavailable as error:
        if is_needed:
            raise
        # A client with its own credentials does not need ours.
        log.warning("%s", error.message)
        return access
    return StorageAccess(access.prefix, access.config, spell_credentials(found))


def spell_options(options: Mapping[str, str]) -> dict[str, str]:
    """Public storage options under the names that Iceberg's clients know."""
    known = {name.lower(): value for name, value in options.items()}

    def option(*names: str) -> str:
        found = (known.get(prefix + name, "") for name in names for prefix in PREFIXES)
        return next(filter(None, found), "")

    told: dict[str, str] = {}
    if region := option("region", "default_region"):
        told |= {"client.region": region, "s3.region": region}
    if endpoint := option("endpoint", "endpoint_url"):
        is_path = option("virtual_hosted_style_request").lower() != "true"
        told |= {"s3.endpoint": endpoint, "s3.path-style-access": str(is_path).lower()}
    return told


def spell_credentials(options: Mapping[str, str]) -> dict[str, str]:
    """Issued credentials under the names that Iceberg's clients know."""
    names = {
        "aws_access_key_id": "s3.access-key-id",
        "aws_secret_access_key": "s3.secret-access-key",
        "aws_session_token": "s3.session-token",
        "expires_at_millis": "s3.session-token-expires-at-ms",
    }
    return {told: options[name] for name, told in names.items() if name in options}
