"""Requests as JSON, for SCHEDULER_SERIALIZER: what reads the queue executes nothing of it.

The values in ``meta``, ``cb_kwargs`` and ``cookies`` of a request must be those of JSON. A tuple
becomes a list. A request with others is not stored in Redis: it stays in the memory of its worker.
"""

from __future__ import annotations

import json
from typing import Any


def dumps(request: dict[str, Any]) -> bytes:
    """Return what ``Request.to_dict()`` returns as JSON. Raises TypeError for other values."""
    headers = {
        name.decode("latin-1"): [value.decode("latin-1") for value in values]
        for name, values in request["headers"].items()
    }
    body = request["body"].decode("latin-1")
    return json.dumps({**request, "headers": headers, "body": body}).encode()


def loads(text: bytes) -> dict[str, Any]:
    """Return what :func:`dumps` got. Raises ValueError for anything else."""
    request: dict[str, Any] = json.loads(text)
    request["headers"] = {
        name.encode("latin-1"): [value.encode("latin-1") for value in values]
        for name, values in request["headers"].items()
    }
    request["body"] = request["body"].encode("latin-1")
    return request
