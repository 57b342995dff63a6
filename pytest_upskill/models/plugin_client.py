"""A wrapper of a plugin's client that reports its defects as provider errors."""

from __future__ import annotations

import asyncio
from dataclasses import asdict

from pydantic import TypeAdapter, ValidationError

from pytest_upskill.checks.extensions import describe_exception
from pytest_upskill.models.client import Client, ProviderError
from pytest_upskill.models.completion import Completion, clean
from pytest_upskill.models.request import Request
from pytest_upskill.models.wire.fields import clean_json
from pytest_upskill.project.redaction import Redactor


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
        try:
            completion: object = await self._client.complete(request)
        except ProviderError as error:
            error.args = (self._clean(str(error)),)
            raise
        except BaseException as error:
            if _is_cancellation(error):
                raise
            raise ProviderError(
                f"{self._name}: its client's complete() raised "
                f"{self._clean(describe_exception(error))}"
            ) from None
        return self._valid_completion(completion)

    def _valid_completion(self, completion: object) -> Completion:
        """Return what the client returned, redacted and validated.

        Raises:
            ProviderError: It is not a valid completion.
        """
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

    def _clean(self, text: str) -> str:
        return self._redactor.redact(clean(text))

    async def aclose(self) -> None:
        """Close the connections.

        Raises:
            ProviderError: The plugin's client raised an exception.
        """
        try:
            await self._client.aclose()
        except BaseException as error:
            if _is_cancellation(error):
                raise
            raise ProviderError(
                f"{self._name}: its client's aclose() raised "
                f"{self._clean(describe_exception(error))}: "
                "no answer is lost"
            ) from None


def _is_cancellation(error: BaseException) -> bool:
    """Return whether an exception cancels the current task.

    Any other exception of a plugin's code is a defect, also if it is no ``Exception``, such as
    those of ``pytest.fail()`` and ``sys.exit()``.
    """
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0
