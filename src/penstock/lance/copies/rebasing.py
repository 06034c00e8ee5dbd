"""Rewrite Lance manifests that name their own table's folder, after it moved. Pure.

The manifest of a branch has the table's absolute location as a base, so a copied or moved table
would keep reading the old files. What precedes the manifest's message keeps its place; only the
message, at the end, changes its length.
"""

from collections.abc import Callable

from penstock.lance.commit.manifest import (
    FIELD_BASE,
    FIELD_BASE_PATH,
    FOOTER,
    MAGIC,
    BadManifest,
    check_footer,
    read_varint,
)

Change = Callable[[str], str]


def rebase(content: bytes, change: Change) -> bytes:
    """A manifest file with changed bases; the same bytes when none changes."""
    start = check_footer(content[-FOOTER.size :], len(content))
    length = int.from_bytes(content[start : start + 4], "little")
    end = start + 4 + length
    if end > len(content) - FOOTER.size:
        raise BadManifest("it is cut short")
    message = content[start + 4 : end]
    changed = _change_field(
        message,
        FIELD_BASE,
        lambda base: _change_field(base, FIELD_BASE_PATH, lambda path: _to_path(path, change)),
    )
    if changed == message:
        return content
    if content[end : -FOOTER.size]:
        raise BadManifest("there is something behind its message")
    _, major, minor, _ = FOOTER.unpack(content[-FOOTER.size :])
    head = content[:start] + len(changed).to_bytes(4, "little") + changed
    return head + FOOTER.pack(start, major, minor, MAGIC)


def _to_path(path: bytes, change: Change) -> bytes:
    return change(path.decode()).encode()


def _change_field(message: bytes, wanted: int, change: Callable[[bytes], bytes]) -> bytes:
    """The message with each value of a length-delimited field changed."""
    out, at = bytearray(), 0
    while at < len(message):
        begin = at
        key, at = read_varint(message, at)
        wire = key & 7
        if wire == 0:
            _, at = read_varint(message, at)
        elif wire == 2:
            length, at = read_varint(message, at)
            if at + length > len(message):
                raise BadManifest("its message is damaged")
            value, at = message[at : at + length], at + length
            if key >> 3 == wanted:
                value = change(value)
                out += _write_varint(key) + _write_varint(len(value)) + value
                continue
        elif wire in (1, 5):
            at += 8 if wire == 1 else 4
        else:
            raise BadManifest("its message is damaged")
        out += message[begin:at]
    return bytes(out)


def _write_varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
