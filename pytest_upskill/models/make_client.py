"""Construction of the client of a wire format, and the SDK that it needs."""

from __future__ import annotations

from importlib.util import find_spec

from pytest_upskill.models.client import Client, ProviderError
from pytest_upskill.models.hosts import BY_PREFIX
from pytest_upskill.models.keys import Endpoint
from pytest_upskill.models.model import Model
from pytest_upskill.project.redaction import without_userinfo


def missing_sdk(model: Model) -> str:
    """Return how to install the SDK that a model needs, "" if it is there."""
    if model.provider not in BY_PREFIX:
        return ""
    name = BY_PREFIX[model.provider].wire
    if find_spec(name) is not None:
        return ""
    return f"{model.label}: needs the {name} SDK: pip install 'pytest-upskill[{name}]'"


def make_client(endpoint: Endpoint) -> Client:
    """Make the client for all models at an endpoint.

    It imports the provider's SDK, which can take seconds, so do not call it on the event loop.

    Args:
        endpoint: Host and key.

    Raises:
        LookupError: The provider is not built in; a plugin may serve it.
        ProviderError: The environment variables prevent the creation of a client.
    """
    try:
        match endpoint.wire:
            case "anthropic":
                from pytest_upskill.models.anthropic import AnthropicClient

                return AnthropicClient(endpoint)
            case "openai":
                from pytest_upskill.models.openai import OpenAIClient

                return OpenAIClient(endpoint)
            case "offline":
                from pytest_upskill.models.offline import OfflineClient

                return OfflineClient()
    except Exception as error:  # noqa: BLE001  raised by an SDK: its traceback would show the key
        message = " ".join(without_userinfo(endpoint.redact(str(error))).split())
        reason = f"{type(error).__name__}: {message}"
        raise ProviderError(
            f"cannot create a client for {endpoint.host} ({reason}): check the environment "
            f"variables for proxies, certificates (SSL_CERT_FILE) and "
            f"{endpoint.wire.upper()}_*",
            fatal=True,
        ) from None
    raise LookupError(endpoint.wire)
