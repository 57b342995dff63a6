"""The table of hosts that are known by name: to add one, add a row.

Base URLs and key variables are those of the vendors' own SDKs and documentation, which
``docs/models.md`` lists by row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal
from urllib.parse import urlsplit

WireFormat = Literal["anthropic", "openai"]
"""Format of requests and replies: Anthropic's Messages or OpenAI's Chat Completions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownHost:
    """A host that a prefix of a model's name stands for."""

    prefix: str
    title: str
    url: str
    """Base URL."""
    keys: tuple[str, ...] = ()
    """Environment variables of its key, of which the first that is set is used."""
    wire: WireFormat = "openai"
    local: bool = False
    """Whether it is a server on the user's own machine, which needs no key and has few slots."""
    client: str = ""
    """Class of its client in the SDK, which signs in by environment variables and files; "" for the
    general client with a key."""
    url_variable: str = ""
    """Environment variable that changes the base URL."""
    needs: tuple[str, ...] = ()
    """Environment variables without which the client has no URL."""
    modules: tuple[str, ...] = ()
    """What the client imports besides the SDK, from the extra that is named like the prefix."""
    sign_in: str = ""
    """What to check if the client is not let in; "" for the variables of the key."""
    domains: tuple[str, ...] = ()
    """Ends of the names of hosts that are the vendor's, where each user has one."""
    refuses: tuple[str, ...] = ()
    """Parameters that it refuses for every model."""
    seed: str = "seed"
    """Its name for the seed."""
    nested_effort: bool = False
    """Whether it takes the effort as ``{"reasoning": {"effort": …}}``."""


HOSTS = (
    KnownHost(
        prefix="anthropic",
        title="Anthropic",
        url="https://api.anthropic.com",
        keys=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
        wire="anthropic",
        client="AsyncAnthropic",
        url_variable="ANTHROPIC_BASE_URL",
        refuses=("temperature", "top_p", "seed"),
    ),
    KnownHost(
        prefix="openai",
        title="OpenAI",
        url="https://api.openai.com/v1",
        keys=("OPENAI_API_KEY",),
        client="AsyncOpenAI",
        url_variable="OPENAI_BASE_URL",
    ),
    KnownHost(
        prefix="azure",
        title="Azure OpenAI",
        url="https://resource.openai.azure.com",
        keys=("AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN"),
        client="AsyncAzureOpenAI",
        url_variable="AZURE_OPENAI_ENDPOINT",
        needs=("AZURE_OPENAI_ENDPOINT",),
        sign_in="AZURE_OPENAI_API_KEY, AZURE_OPENAI_AD_TOKEN, or az login",
        domains=(".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com"),
    ),
    KnownHost(
        prefix="bedrock",
        title="Amazon Bedrock",
        url="https://bedrock-runtime.region.amazonaws.com",
        wire="anthropic",
        client="AsyncAnthropicBedrock",
        url_variable="ANTHROPIC_BEDROCK_BASE_URL",
        modules=("boto3",),
        domains=(".amazonaws.com",),
        sign_in="AWS_BEARER_TOKEN_BEDROCK, AWS_ACCESS_KEY_ID, AWS_PROFILE, or aws sso login",
        refuses=("seed",),
    ),
    KnownHost(
        prefix="vertex",
        title="Google Vertex AI",
        url="https://region-aiplatform.googleapis.com/v1",
        wire="anthropic",
        client="AsyncAnthropicVertex",
        url_variable="ANTHROPIC_VERTEX_BASE_URL",
        needs=("CLOUD_ML_REGION", "ANTHROPIC_VERTEX_PROJECT_ID"),
        modules=("google.auth",),
        domains=(".googleapis.com",),
        sign_in="GOOGLE_APPLICATION_CREDENTIALS, or gcloud auth application-default login",
        refuses=("seed",),
    ),
    KnownHost(
        prefix="openrouter",
        title="OpenRouter",
        url="https://openrouter.ai/api/v1",
        keys=("OPENROUTER_API_KEY",),
        nested_effort=True,
    ),
    KnownHost(
        prefix="groq",
        title="Groq",
        url="https://api.groq.com/openai/v1",
        keys=("GROQ_API_KEY",),
    ),
    KnownHost(
        prefix="together",
        title="Together AI",
        url="https://api.together.ai/v1",
        keys=("TOGETHER_API_KEY",),
    ),
    KnownHost(
        prefix="deepseek",
        title="DeepSeek",
        url="https://api.deepseek.com/v1",
        keys=("DEEPSEEK_API_KEY",),
    ),
    KnownHost(
        prefix="mistral",
        title="Mistral",
        url="https://api.mistral.ai/v1",
        keys=("MISTRAL_API_KEY",),
        seed="random_seed",
    ),
    KnownHost(
        prefix="gemini",
        title="Google Gemini",
        url="https://generativelanguage.googleapis.com/v1beta/openai",
        keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    ),
    KnownHost(
        prefix="hf",
        title="Hugging Face",
        url="https://router.huggingface.co/v1",
        keys=("HF_TOKEN",),
    ),
    KnownHost(
        prefix="llamacpp",
        title="llama.cpp",
        url="http://127.0.0.1:8080/v1",
        local=True,
        # Its own default became 9931 in autumn 2026; the docs start it on this port.
    ),
    KnownHost(
        prefix="ollama",
        title="Ollama",
        url="http://127.0.0.1:11434/v1",
        local=True,
    ),
    KnownHost(
        prefix="lmstudio",
        title="LM Studio",
        url="http://127.0.0.1:1234/v1",
        local=True,
    ),
    KnownHost(
        prefix="vllm",
        title="vLLM",
        url="http://127.0.0.1:8000/v1",
        local=True,
    ),
)

BY_PREFIX: Mapping[str, KnownHost] = MappingProxyType({host.prefix: host for host in HOSTS})

PLATFORMS = frozenset({"azure", "bedrock", "vertex"})
"""Prefixes of clouds that serve the models of vendors to their own customers."""

BY_NETLOC: Mapping[str, KnownHost] = MappingProxyType(
    {
        urlsplit(host.url).netloc: host
        for host in HOSTS
        if not host.local and host.prefix not in PLATFORMS
    }
)
"""The vendors' hosts by ``host:port``. A local address may be any server."""
