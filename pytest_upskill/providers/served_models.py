"""The identity of a model on a custom host, which may change under the same URL and name."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pytest_upskill.completion import clean
from pytest_upskill.providers.keys import NO_KEY, Endpoint

_TIMEOUT_S = 2.0
_MOST_BYTES = 1 << 22
_MOST_CHARS = 200
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
        listed = _fetch_list(endpoint)
    except Exception:  # noqa: BLE001  whatever goes wrong, the request for an answer reports it
        return {}
    found = {name: _describe(listed, name) for name in names}
    return {
        name: endpoint.redact(clean(text))[:_MOST_CHARS] for name, text in found.items() if text
    }


def _fetch_list(endpoint: Endpoint) -> list[Mapping[str, Any]]:
    # Imported late: without the SDKs there is no HTTP client, but recordings can still be replayed.
    import httpx2

    root = endpoint.url.rstrip("/")
    url = f"{root}/models" if root.endswith("/v1") else f"{root}/v1/models"
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
            if len(body) > _MOST_BYTES:
                return []
    entries = json.loads(bytes(body))["data"]
    return [entry for entry in entries if isinstance(entry, Mapping)]


def _describe(listed: list[Mapping[str, Any]], name: str) -> str:
    """Return a description of the model with a name, "" if it is unknown.

    If the host has only one model, it is that one: llama-server accepts any name.
    """
    named = [entry for entry in listed if entry.get("id") == name]
    entries = named or (listed if len(listed) == 1 else [])
    if not entries:
        return ""
    entry, meta = entries[0], entries[0].get("meta")
    names = [str(entry[key]) for key in _LASTING if isinstance(entry.get(key), str)]
    figures = [
        f"{key} {meta[key]}"
        for key in _FIGURES
        if isinstance(meta, Mapping) and isinstance(meta.get(key), (int, str))
    ]
    return ", ".join([*map(repr, dict.fromkeys(names)), *figures])
