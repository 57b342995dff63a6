"""What a custom host serves under a model's name, which may change while URL and name do not."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pytest_upskill.models.completion import clean
from pytest_upskill.models.content import get_field
from pytest_upskill.models.keys import NO_KEY, Endpoint

_TIMEOUT_S = 2.0
_MAX_BYTES = 1 << 22
_MAX_CHARS = 200
_LASTING = ("id", "root")
"""Fields that identify a model. ``created`` does not: llama-server sets it to the current time."""

_FIGURES = ("n_params", "size", "n_vocab", "n_embd", "n_ctx_train", "ftype")
"""Fields in which llama-server describes its model file."""


def served_models(endpoint: Endpoint, names: Iterable[str]) -> dict[str, str]:
    """Return descriptions of the models that a host serves, by name, from its list of models.

    It is empty if the request fails or takes over two seconds.

    Args:
        endpoint: Host and key.
        names: Names of the models to describe.
    """
    try:
        entries = _fetch_list(endpoint)
    except Exception:  # noqa: BLE001  a failing host is reported by the first request to it
        return {}
    return {
        name: endpoint.redactor.redact(clean(text))[:_MAX_CHARS]
        for name in names
        if (text := _describe(entries, name))
    }


def _fetch_list(endpoint: Endpoint) -> list[Mapping[str, Any]]:
    # Imported late: without the SDKs there is no HTTP client, but recordings can still be replayed.
    import httpx2

    url = f"{endpoint.url.rstrip('/').removesuffix('/v1')}/v1/models"
    headers = {"user-agent": "pytest-upskill", "accept": "application/json"}
    if endpoint.key and endpoint.key != NO_KEY:
        headers["authorization"] = f"{endpoint.scheme} {endpoint.key}"
    body = bytearray()
    with httpx2.stream(
        "GET", url, headers=headers, timeout=_TIMEOUT_S, follow_redirects=False
    ) as response:
        response.raise_for_status()
        for chunk in response.iter_bytes():
            body += chunk
            if len(body) > _MAX_BYTES:
                return []
    return [entry for entry in json.loads(bytes(body))["data"] if isinstance(entry, Mapping)]


def _describe(entries: list[Mapping[str, Any]], name: str) -> str:
    """Return a description of the model that answers to a name, "" if it is unknown.

    The only model of a host answers to any name, as llama-server's does.
    """
    only = entries[0] if len(entries) == 1 else None
    entry = next((entry for entry in entries if entry.get("id") == name), only)
    if entry is None:
        return ""
    names = (entry[key] for key in _LASTING if isinstance(entry.get(key), str))
    meta = ((key, get_field(entry.get("meta"), key)) for key in _FIGURES)
    figures = (f"{key} {figure}" for key, figure in meta if isinstance(figure, (int, str)))
    return ", ".join([*map(repr, dict.fromkeys(names)), *figures])
