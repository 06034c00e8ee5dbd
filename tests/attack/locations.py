"""Locations that lead out of the lake or into another's folder, by every encoding and store."""

from collections.abc import Iterator
from urllib.parse import quote

import pyarrow as pa

from tests.attack.attack import REFUSED, Attack, Request, post, send_arrow
from tests.attack.place import HIDDEN, MINE, OWNER, PIT, THEIRS, Place
from tests.attack.routes import ICEBERG
from tests.harness import view_requests as views
from tests.harness.arrow import to_stream

FAMILY = "locations"
# How '..' is written, and what may cut a path off or stand for a slash.
UPS = (
    *("..", "%2e%2e", "%2E%2E", ".%2e", "%2e.", "%252e%252e", "%2e%2e%2f", "..%2f", "..%5c", "..\\"),
    *("..;", "..%00", "%c0%ae%c0%ae", "%uff0e%uff0e", "\uff0e\uff0e", "..%09", ". .", "...", "....//"),
)
CUTS = ("?", "#", "%3f", "%23", ";", "%00", "\x00", "\n", "%0a", "*", "?x=y#z", "\\", "//", "/./")
SCHEMES = (
    *("http://127.0.0.1/x", "https://example.org/x", "ftp://x/y", "data:,x", "gopher://x", "jar:file:/x"),
    *("file://remote/x", "file:/etc/x", "file:////etc/x", "FILE:///etc/x", "s3a://bucket/lake/x"),
    *("S3://bucket/lake/x", "s3://other/lake/x", "s3:///lake/x", "s3://bucket", "s3://bucket/", "s3:x"),
    *("gs://bucket/x", "az://bucket/x", "memory://x", "memory:///x", "abfss://c@a/x", "hdfs://x/y"),
    *("s3://user:pass@bucket/lake/x", "s3://bucket:80/lake/x", "s3://bucket@evil/lake/x", "\\\\host\\x"),
    *("s3+ddb://bucket/lake/x", "file-object-store:///etc/x", "file+uring:///etc/x", "lance://x"),
)


def make(place: Place) -> Iterator[Attack]:
    for name, location in _locations(place):
        for route, request in _requests(location).items():
            yield Attack(FAMILY, f"{route} at {name}", OWNER, request, REFUSED)
    yield from _manifests(place)


def _locations(place: Place) -> Iterator[tuple[str, str]]:
    """Places where the owner of `mine` has no business."""
    for root in (place.root, f"file://{place.root}", place.remote_root):
        for up in UPS:
            yield f"{root[:5]} {up!r} and back", f"{root}/{up}/outside/x"
            yield f"{root[:5]} {up!r} from below", f"{root}/a/{up}/{up}/beside/x"
        for cut in CUTS:
            yield f"{root[:5]} cut by {cut!r}", f"{root}{cut}/x"
            yield f"{root[:5]} all of it, cut by {cut!r}", f"{root}/{cut}"
        yield f"{root[:5]} itself", root
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
    for number, location in enumerate(SCHEMES):
        yield f"scheme {number} {location}", location
    for location in (place.outside, f"{place.outside}/note", "/", "/etc", "/proc/self/root", "~", "."):
        yield f"outside: {location[-12:]}", location


def _requests(location: str) -> dict[str, Request]:
    """Every way to tell the server of a location."""
    pit = PIT.replace("$", "%1F")
    header = location.replace("\n", "").replace("\x00", "")
    create = views.create("", "located").body
    move = [{"action": "set-location", "location": location}]
    path = [
        {"action": "set-properties", "updates": {"write.metadata.path": location}},
    ]
    return {
        "declare": post(f"/v1/table/{PIT}$new/declare", {"location": location}),
        "register": post(f"/v1/table/{PIT}$new/register", {"location": location}),
        "create": send_arrow(
            f"/v1/table/{PIT}$new/create", SMALL, x_lance_table_location=header or "x"
        ),
        "batch": post(
            "/v1/table/batch-commit",
            {"operations": [{"declare_table": {"id": [*PIT.split("$"), "new"], "location": location}}]},
        ),
        "view": post(f"{ICEBERG}/namespaces/{pit}/views", {**create, "location": location}),
        "view's move": post(f"{ICEBERG}/namespaces/{pit}/views/v", {"updates": move}),
        "view's files": post(f"{ICEBERG}/namespaces/{pit}/views/v", {"updates": path}),
        "view's file": post(
            f"{ICEBERG}/namespaces/{pit}/register-view",
            {"name": "new", "metadata-location": f"{location}/metadata/00000-x.gz.metadata.json"},
        ),
    }


SMALL = to_stream(pa.table({"id": [1]}))


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
