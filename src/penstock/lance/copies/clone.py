"""Clone one version of a table into a folder of its own, by copying files. Blocks."""

from penstock.lance.columns.computed import RESERVED
from penstock.lance.columns.fields import show_path
from penstock.lance.doors import lance
from penstock.lance.storage.lake import Place
from penstock.lance.write.reserved_metadata import list_fields
from penstock.lance.write.view_tables import VIEW_KEYS


def clone(dataset: "lance.LanceDataset", branch: str, place: Place, options: dict[str, str]) -> int:
    """Copy data, deletions and indexes, and return the clone's version; rows keep their ids.

    What binds columns to functions, and views to queries, counts for one table only.
    """
    # A separate handle, because cloning one blocks all other use of it.
    own = dataset.checkout_version((branch or None, dataset.version))
    made = own.deep_clone(place.location, (branch or None, dataset.version), options or None)
    bound: dict[str, dict[str, str | None]] = {}
    for path, metadata in list_fields(made.schema):
        names = (key.decode(errors="replace") for key in metadata)
        if keys := [name for name in names if name.lower().startswith(RESERVED)]:
            bound[show_path(path)] = dict.fromkeys(keys)
    if bound:
        made.update_field_metadata(bound)
    if told := [key for key in made.schema_metadata if key.startswith(VIEW_KEYS)]:
        made.update_schema_metadata(dict.fromkeys(told))
    return made.version
