"""The generated Lance Namespace client, with a check of every reply.

A reply passes when the client's model reads it and writes the very same JSON back, so that
there is neither a wrong type nor a field that the protocol doesn't know.
"""

import json
from typing import Any

import lance_namespace_urllib3_client

# The package does not say what it exports.
generated: Any = lance_namespace_urllib3_client
models: Any = lance_namespace_urllib3_client.models


class Client:
    """The generated client; `client.create_namespace(…)` returns a checked reply."""

    def __init__(self, url: str) -> None:
        api = generated.ApiClient(generated.Configuration(host=url))
        self._apis = (
            generated.NamespaceApi(api),
            generated.TableApi(api),
            generated.TransactionApi(api),
            generated.MaterializedViewApi(api),
        )

    def __getattr__(self, operation: str) -> Any:
        api = next(a for a in self._apis if hasattr(a, operation))
        call = getattr(api, f"{operation}_with_http_info")

        def checked(*arguments: Any, **options: Any) -> Any:
            answer = call(*arguments, **options)
            assert answer.status_code in (200, 201, 202)
            if answer.data is None:
                assert answer.raw_data == b""
                return None
            raw = json.loads(answer.raw_data)
            assert type(answer.data).from_json(answer.raw_data) == answer.data
            assert answer.data.to_dict() == raw
            return answer.data

        return checked
