"""Locations that lead out of the lake or into another's folder, by every encoding and store."""

from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import quote

import pyarrow as pa

from tests.attack.attack import HANDLED, REFUSED, Attack, Request, post, send_arrow
from tests.attack.families.routes import ICEBERG
from tests.attack.place import HIDDEN, MINE, OWNER, PIT, THEIRS, Place
from tests.harness.clients import iceberg_requests as views
from tests.harness.clients import iceberg_tables as tables
from tests.harness.data.arrow import to_stream

FAMILY = "locations"
TABLE = tables.create("", "").body
# How '..' is written: by what no file system takes for a name, and by what one might.
UPS = ("..", "..%2f..", "%2e%2e", "%2E%2E", ".%2e", "%2e.", "%2e%2e%2f")
ODD_UPS = (
    *("..%5c", "..\\", "..;", "%c0%ae%c0%ae", "\uff0e\uff0e", ". .", "...", "%73", "%2F", "%zz"),
    "%252e%252e",
)
CUTS = ("?", "#", "%3f", "%23", "%00", "\x00", "\n", "?x=y#z")
ODD_CUTS = ("%0a", "*", "\\", "//", " ", "+")
SCHEMES = (
    *("http://127.0.0.1/x", "https://example.org/x", "ftp://x/y", "gopher://x/y", "jar:file:///x"),
    *("file://remote/x", "file:////etc/x", "FILE:///etc/x", "s3a://bucket/lake/x", "s3://bucket"),
    *("s3://other/lake/x", "s3:///lake/x", "s3://bucket/", "s3://bucket/lake2/x", "s3://bucket/x"),
    *("gs://bucket/x", "az://bucket/x", "memory://x", "memory:///x", "abfss://c@a/x", "hdfs://x/y"),
    *("s3://user:pass@bucket/lake/x", "s3://bucket:80/lake/x", "s3://bucket@evil/lake/x"),
    *("s3+ddb://bucket/lake/x", "file-object-store:///etc/x", "file+uring:///etc/x", "lance://x/y"),
    *("s3://Bucket/lake/x", "s3://bucket.evil/lake/x", "s3://[::1]/lake/x", "://x", "s3://"),
)


def make(place: Place) -> Iterator[Attack]:
    found = [(*each, REFUSED) for each in _never(place)] + [
        (*each, HANDLED) for each in _odd(place)
    ]
    for number, (name, location, may) in enumerate(found):
        for route in ROUTES:
            # Each where no other has been before it, if it may be there at all.
            where = location if may is REFUSED else f"{location}-{route[-4:].strip()}"
            before, request = _requests(where, f"n{number}{route[-4:].strip()}")[route]
            # What a header cannot hold is another location there.
            if route == "create" and not location.isprintable():
                continue
            attack = Attack(FAMILY, f"{route} at {name}", OWNER, request, may, before=before)
            if route == "view's return":
                # What came before was refused, so that the view is where it was.
                told = (f'"location":"{location}"',) if may is REFUSED else ()
                attack = replace(attack, may=HANDLED, never=told)
            yield attack
    yield from _manifests(place)


def _roots(place: Place) -> tuple[str, ...]:
    return (place.root, f"file://{place.root}", place.remote_root)


def _odd(place: Place) -> Iterator[tuple[str, str]]:
    """Places that might be below the root: then what is written is there, and nowhere else."""
    for root in _roots(place):
        for up in ODD_UPS:
            yield f"{root[:5]} {up!r} from below", f"{root}/a/{up}/{up}/beside/x"
        for cut in ODD_CUTS:
            yield f"{root[:5]} with {cut!r}", f"{root}/x{cut}y"
    yield "a relative home", "~"
    yield "a relative URI", "file:/etc/x"
    yield "a relative bucket", "s3:x"
    yield "data", "data:,x"
    yield "a share", "\\\\host\\x"


def _never(place: Place) -> Iterator[tuple[str, str]]:
    """Places where the owner of `mine` has no business."""
    for root in _roots(place):
        for up in UPS:
            yield f"{root[:5]} {up!r} and back", f"{root}/{up}/outside/x"
            yield f"{root[:5]} {up!r} from below", f"{root}/a/{up}/{up}/beside/x"
        for cut in CUTS:
            if root.startswith("s3") or cut in ("\x00", "\n"):
                yield f"{root[:5]} below it, cut by {cut!r}", f"{root}/x{cut}y"
            yield f"{root[:5]} cut by {cut!r}", f"{root}{cut}/x"
        yield f"{root[:5]} itself", root
        yield f"{root[:5]} itself and slashes", f"{root}//"
        yield f"{root[:5]} itself by a dot", f"{root}/./"
        yield f"{root[:5]} with another beside it", f"{root}2/x"
    for ns in (HIDDEN, THEIRS, MINE):
        for name, place_of in {
            "the folder of {}": "{}",
            "below {}": "{}/data/x",
            "within {}'s versions": "{}/_versions",
            "{} and a slash": "{}/",
            "{} and slashes": "{}///",
            "{} and a dot": "{}/.",
            "{} by another way": "{}/../{}",
            "{} as a file": "file://{}",
            "{} on this machine": "file://localhost{}",
        }.items():
            yield name.format(ns), place_of.replace("{}", place.table(ns))
        for below in ("", "/", "/metadata", "/data/x"):
            yield f"{ns}'s Iceberg table{below}", f"{place.iceberg_table(ns)}{below}"
            yield (
                f"{ns}'s Iceberg table{below} as a file",
                (f"file:{place.iceberg_table(ns)}{below}"),
            )
        encoded = place.table(ns)[:-1] + f"%{ord(place.table(ns)[-1]):02x}"
        yield f"{ns} with its last letter encoded", f"file://{encoded}"
        yield f"{ns} all encoded", "file://" + quote(place.table(ns), safe="/").replace("l", "%6c")
    for ns in (HIDDEN, MINE):
        far = f"{place.remote_root}/{ns}.lance"
        for name, location in {
            "far": far,
            "far and below": f"{far}/data",
            "far and a slash": f"{far}/",
            "far, encoded": far.replace(".lance", "%2elance"),
            "far, a letter encoded": far.replace("lance", "l%61nce"),
            "far, twice the slash": far.replace("/lake/", "/lake//"),
            "far by a dot": far.replace("/lake/", "/lake/./"),
        }.items():
            yield f"{ns} {name}", location
    for root in (place.root, place.remote_root):
        yield f"{root[:5]} results", f"{root}/_results"
        yield f"{root[:5]} below results", f"{root}/_results/x"
    for number, location in enumerate(SCHEMES):
        yield f"scheme {number} {location}", location
    for location in (place.outside, f"{place.outside}/note", "/", "/etc", "/proc/self/root", "."):
        yield f"outside: {location[-12:]}", location


def _requests(location: str, new: str) -> dict[str, tuple[tuple[Request, ...], Request]]:
    """Every way to tell the server of a location; each with what it needs to be there."""
    root = f"{ICEBERG}/namespaces/{PIT.replace('$', '%1F')}"
    id = [*PIT.split("$"), new]
    made = views.create("", new).body
    view = (post(f"{root}/views", made),)
    table = (post(f"{root}/tables", {**TABLE, "name": new}),)
    declare = {"declare_table": {"id": id, "location": location}}
    move = {"action": "set-location", "location": location}
    files = {"action": "set-properties", "updates": {"write.metadata.path": location}}
    away = {"action": "set-properties", "updates": {"write.metadata.path": AWAY}}
    back = {"action": "remove-properties", "removals": ["write.metadata.path"]}
    file = f"{location}/metadata/00000-x.gz.metadata.json"
    return {
        "declare": ((), post(f"/v1/table/{PIT}${new}/declare", {"location": location})),
        "register": ((), post(f"/v1/table/{PIT}${new}/register", {"location": location})),
        "create": (
            (),
            send_arrow(f"/v1/table/{PIT}${new}/create", SMALL, x_lance_table_location=location),
        ),
        "batch": ((), post("/v1/table/batch-commit", {"operations": [declare]})),
        "view": ((), post(f"{root}/views", {**made, "location": location})),
        "iceberg table": ((), post(f"{root}/tables", {**TABLE, "name": new, "location": location})),
        "iceberg table's stage": (
            (),
            post(
                f"{root}/tables",
                {**TABLE, "name": new, "location": location, "stage-create": True},
                x_iceberg_access_delegation="vended-credentials",
            ),
        ),
        "iceberg table's going": (table, post(f"{root}/tables/{new}", {"updates": [move]})),
        "iceberg table's metadata": (table, post(f"{root}/tables/{new}", {"updates": [files]})),
        "iceberg table's document": (
            (),
            post(f"{root}/register", {"name": new, "metadata-location": file}),
        ),
        "view's files": (view, post(f"{root}/views/{new}", {"updates": [files]})),
        "view's move": (view, post(f"{root}/views/{new}", {"updates": [move]})),
        # A view whose files are elsewhere says where it is, and then its files come back to it.
        "view's return": (
            (*view, post(f"{root}/views/{new}", {"updates": [away, move]})),
            post(f"{root}/views/{new}", {"updates": [back]}),
        ),
        "view's file": (
            (),
            post(f"{root}/register-view", {"name": new, "metadata-location": file}),
        ),
    }


AWAY = "pit-files"
SMALL = to_stream(pa.table({"id": [1]}))
ROUTES = tuple(_requests("", ""))


def _manifests(place: Place) -> Iterator[Attack]:
    """Manifests of a version that are not the table's own."""
    for name, path in {
        "hidden": f"{place.table(HIDDEN)}/_versions/1.manifest",
        "outside": f"{place.outside}/note",
        "up": f"{place.table(MINE)}/../x",
        "encoded up": f"{place.table(MINE)}/%2e%2e/x",
        "relative": "../../x",
        "a URI": f"file://{place.table(HIDDEN)}/_versions/1.manifest",
        "far": f"{place.remote_root}/veil.lance/_versions/1.manifest",
        "nothing": "",
        "NUL": "a\x00b",
    }.items():
        entry = {"version": 9, "manifest_path": path}
        id = [*PIT.split("$"), "t"]
        for route, request in {
            "version": post(f"/v1/table/{PIT}$t/version/create", entry),
            "versions": post("/v1/table/version/batch-create", {"entries": [{"id": id, **entry}]}),
            "commit": post(
                "/v1/table/batch-commit",
                {"operations": [{"create_table_version": {"id": id, **entry}}]},
            ),
        }.items():
            yield Attack(FAMILY, f"manifest of a {route}: {name}", OWNER, request, REFUSED)
