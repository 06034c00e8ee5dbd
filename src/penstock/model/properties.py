"""Properties: string maps, kept as JSON text."""

import msgspec

_decoder = msgspec.json.Decoder(dict[str, str])


def encode_properties(properties: dict[str, str]) -> str:
    return msgspec.json.encode(properties).decode()


def decode_properties(text: str) -> dict[str, str]:
    return _decoder.decode(text)
