"""The client of an endpoint: that of its wire format's SDK, or a plugin's."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from pytest_upskill.checks.extensions import describe_exception
from pytest_upskill.models.completion import Completion, clean
from pytest_upskill.models.content import clean_json
from pytest_upskill.models.hosts import BY_PREFIX
from pytest_upskill.models.keys import Endpoint, has_module
from pytest_upskill.models.model import Model
from pytest_upskill.models.request import Client, ProviderError, Request
from pytest_upskill.project.redaction import Redactor, without_userinfo

T = TypeVar("T")


def missing_sdk(model: Model) -> str:
    """Return how to install the SDK that a model needs, "" if it is there."""
    if model.provider not in BY_PREFIX:
        return ""
    host = BY_PREFIX[model.provider]
    if not has_module(host.wire):
        what, extra = f"the {host.wire} SDK", str(host.wire)
    elif not all(map(has_module, host.modules)):
        what, extra = f"{' and '.join(host.modules)} to sign in to {host.title}", host.prefix
    else:
        return ""
    return f"{model.label}: needs {what}: pip install 'pytest-upskill[{extra}]'"


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
        message = " ".join(without_userinfo(endpoint.redactor.redact(str(error))).split())
        reason = f"{type(error).__name__}: {message}"
        raise ProviderError(
            f"cannot create a client for {endpoint.host} ({reason}): check the environment "
            f"variables for proxies, certificates (SSL_CERT_FILE) and "
            f"{endpoint.key_variable or endpoint.wire.upper() + '_*'}",
            fatal=True,
        ) from None
    raise LookupError(endpoint.wire)


class PluginClient:
    """A client that validates the completions of a plugin's client.

    Args:
        client: The plugin's client.
        name: Its name in messages.
        redactor: The redactor of known keys.
    """

    def __init__(self, client: Client, name: str, *, redactor: Redactor) -> None:
        self._redactor = redactor
        self._client = client
        self._name = name
        self._adapter = TypeAdapter(Completion)

    async def complete(self, request: Request) -> Completion:
        """Send a request once, and return the redacted completion.

        Raises:
            ProviderError: There is no usable reply, or the client has a defect.
        """
        if request.tools and getattr(self._client, "accepts_tools", False) is not True:
            raise ProviderError(
                f"{self._name}: its client accepts no tools: choose another model, or set "
                "accepts_tools = True in the client once its complete() sends them",
                billable=False,
            )
        completion: object = await self._call("complete()", lambda: self._client.complete(request))
        if not isinstance(completion, Completion):
            raise ProviderError(
                f"{self._name}: its client's complete() returned {type(completion).__name__}: "
                "return a Completion"
            )
        fields = self._redactor.redact_json(clean_json(asdict(completion)))
        try:
            return self._adapter.validate_python(fields)
        except ValidationError as error:
            problem = error.errors()[0]
            raise ProviderError(
                f"{self._name}: its client's complete() returned a Completion with "
                f"{problem['loc'][0]}={problem['input']!r}: {problem['msg']}"
            ) from None

    async def aclose(self) -> None:
        """Close the connections.

        Raises:
            ProviderError: The plugin's client raised an exception.
        """
        await self._call("aclose()", self._client.aclose, ": no answer is lost")

    async def _call(self, name: str, method: Callable[[], Awaitable[T]], note: str = "") -> T:
        """Return what a method of the plugin's client returns.

        Raises:
            ProviderError: What the method raises, redacted.
        """
        try:
            return await method()
        except ProviderError as error:
            error.args = (self._clean(str(error)),)
            raise
        except BaseException as error:
            if is_cancellation(error):
                raise
            text = self._clean(describe_exception(error))
            raise ProviderError(f"{self._name}: its client's {name} raised {text}{note}") from None

    def _clean(self, text: str) -> str:
        return self._redactor.redact(clean(text))


def is_cancellation(error: BaseException) -> bool:
    """Return whether an exception cancels the current task.

    Any other exception of a plugin's code is a defect, also if it is no ``Exception``, such as
    those of ``pytest.fail()`` and ``sys.exit()``.
    """
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0
