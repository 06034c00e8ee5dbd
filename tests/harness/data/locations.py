"""Locations that no client should name, and the files in a store."""

from pathlib import Path

# Steps that some reader of a path takes for something else than themselves.
STEPS = (
    *("..", "%2e%2e", "%2E%2E", ".%2e", "%2e.", "%2e", "%252e%252e", "%25252e%25252e"),
    *("..%2fx", "%2e%2e%2fx", "..%5cx", "a%2f..", "%73ecret", "a%41", "a%00", "a%", "%zz"),
    *("a?b", "a#b", "?", "#", "a?versionId=1", "a\\b", "..\\x", "\\", "*", "a*", "${aws:username}"),
    *("a ", " a", " ", "e\u0301", "a\u200bb", "a\u202eb", "a\x00b", "a\nb", "a\x7fb", "a\u0085b"),
    *("x" * 256, "é" * 128),
)
# Folders that are odd, and mean themselves to everybody.
ODD = (
    "a b",
    "é",
    "日本",
    "a+b",
    "a&b=c",
    "a;b",
    "a$b",
    "a:b",
    "~",
    "~root",
    ".hidden",
    "a..b",
    "...",
)
# Whole locations, below or beside a root that stands for `{root}`.
SPELLINGS = (
    *("{root}", "{root}/", "{root}/.", "{root}-other/t", "{root}/../t", "{root}/a/../../t"),
    *("{root}//t/../../x", "S3://bucket/lake/t", "s3a://bucket/lake/t", "s3n://bucket/lake/t"),
    *("s3://Bucket/lake/t", "s3://user:pw@bucket/lake/t", "s3://bucket:80/lake/t", "s3:bucket/t"),
    *("s3+ddb://bucket/lake/t", "s3://bucket%2flake/t", "s3:///lake/t", "s3://", "s3://[x/t"),
    *("gs://bucket/lake/t", "az://bucket/lake/t", "http://bucket/lake/t", "ftp://h/t", "data:,x"),
    *("memory://x", "memory:///x", "file-object-store:///etc/t", "file+uring:///etc/t"),
    *("FILE:///etc/t", "file://host{root}/t", "file://localhost{root}/t", "file:etc/t"),
    *("file://{root}/t?x", "file://{root}/t#x", "file://{root}/%2e%2e/x", "file://{root}/a%00"),
    *("/etc/t", "//etc/t", "/", "", " ", "~/t/../..", "../t", "a/../../t", "C:\\t", "\\\\host\\t"),
)


def files_below(folder: Path) -> dict[str, bytes]:
    """Every file of a folder on local storage, with what it holds.

    A long one counts by its length and its time: servers that tests share have files with holes.
    """
    found = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): _held(path) for path in found}


def _held(path: Path) -> bytes:
    info = path.stat()
    if info.st_size > 1_000_000:
        return f"{info.st_size} bytes of {info.st_mtime_ns}".encode()
    return path.read_bytes()
