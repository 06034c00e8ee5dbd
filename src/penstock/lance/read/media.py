"""Kinds of pictures, known by their first bytes; what else a value may be is never guessed."""

# The most bytes that are looked at.
HEAD_BYTES = 12


def find_image(head: bytes) -> str | None:
    """The media type of a picture that browsers show, by its first bytes."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return None
