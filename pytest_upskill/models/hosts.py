"""The table of hosts that are known by name: to add one, add a row.

Base URLs and key variables are those of the vendors' own SDKs and documentation, which
``docs/models.md`` lists by row; the table there is made from this one.
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
    sdk: bool = False
    """Whether the environment variables of the vendor's SDK apply, such as its base URL."""
    refuses: tuple[str, ...] = ()
    """Parameters that it refuses for every model."""
    seed: str = "seed"
    """Its name for the seed."""
    nested_effort: bool = False
    """Whether it takes the effort as ``{"reasoning": {"effort": …}}``."""
    former_url: str = ""
    """An earlier base URL that the vendor still serves, and by which genai-prices knows it."""
    command: str = ""
    """What starts it, for a message where it does not run."""
    example: str
    """A model there, as its vendor writes it."""


HOSTS = (
    KnownHost(
        prefix="anthropic",
        title="Anthropic",
        url="https://api.anthropic.com",
        keys=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
        wire="anthropic",
        sdk=True,
        refuses=("temperature", "top_p", "seed"),
        example="claude-haiku-5-5",
    ),
    KnownHost(
        prefix="openai",
        title="OpenAI",
        url="https://api.openai.com/v1",
        keys=("OPENAI_API_KEY",),
        sdk=True,
        example="gpt-6-luna",
    ),
    KnownHost(
        prefix="openrouter",
        title="OpenRouter",
        url="https://openrouter.ai/api/v1",
        keys=("OPENROUTER_API_KEY",),
        nested_effort=True,
        example="z-ai/glm-4.7",
    ),
    KnownHost(
        prefix="groq",
        title="Groq",
        url="https://api.groq.com/openai/v1",
        keys=("GROQ_API_KEY",),
        example="openai/gpt-oss-20b",
    ),
    KnownHost(
        prefix="together",
        title="Together AI",
        url="https://api.together.ai/v1",
        former_url="https://api.together.xyz/v1",
        keys=("TOGETHER_API_KEY",),
        example="openai/gpt-oss-120b",
    ),
    KnownHost(
        prefix="deepseek",
        title="DeepSeek",
        url="https://api.deepseek.com/v1",
        keys=("DEEPSEEK_API_KEY",),
        example="deepseek-v4-flash",
    ),
    KnownHost(
        prefix="mistral",
        title="Mistral",
        url="https://api.mistral.ai/v1",
        keys=("MISTRAL_API_KEY",),
        seed="random_seed",
        example="mistral-small-latest",
    ),
    KnownHost(
        prefix="gemini",
        title="Google Gemini",
        url="https://generativelanguage.googleapis.com/v1beta/openai",
        keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        example="gemini-3.5-flash",
    ),
    KnownHost(
        prefix="hf",
        title="Hugging Face",
        url="https://router.huggingface.co/v1",
        keys=("HF_TOKEN",),
        example="openai/gpt-oss-20b:groq",
    ),
    KnownHost(
        prefix="fireworks",
        title="Fireworks",
        url="https://api.fireworks.ai/inference/v1",
        keys=("FIREWORKS_API_KEY",),
        example="accounts/fireworks/models/gpt-oss-20b",
    ),
    KnownHost(
        prefix="cerebras",
        title="Cerebras",
        url="https://api.cerebras.ai/v1",
        keys=("CEREBRAS_API_KEY",),
        example="gpt-oss-120b",
    ),
    KnownHost(
        prefix="moonshot",
        title="Moonshot (Kimi)",
        url="https://api.moonshot.ai/v1",
        keys=("MOONSHOT_API_KEY",),
        example="kimi-k2.6",
    ),
    KnownHost(
        prefix="llamacpp",
        title="llama.cpp",
        url="http://127.0.0.1:8080/v1",
        local=True,
        # Its own default became 9931 in autumn 2026; the docs start it on the earlier port.
        command="llama-server --port 8080",
        example="glm-4.7-flash",
    ),
    KnownHost(
        prefix="ollama",
        title="Ollama",
        url="http://127.0.0.1:11434/v1",
        local=True,
        command="ollama serve",
        example="gpt-oss:20b",
    ),
    KnownHost(
        prefix="lmstudio",
        title="LM Studio",
        url="http://127.0.0.1:1234/v1",
        local=True,
        command="lms server start --port 1234",
        example="openai/gpt-oss-20b",
    ),
    KnownHost(
        prefix="vllm",
        title="vLLM",
        url="http://127.0.0.1:8000/v1",
        local=True,
        command="vllm serve",
        example="Qwen/Qwen3-8B",
    ),
)

BY_PREFIX: Mapping[str, KnownHost] = MappingProxyType({host.prefix: host for host in HOSTS})

BY_NETLOC: Mapping[str, KnownHost] = MappingProxyType(
    {
        urlsplit(url).netloc: host
        for host in HOSTS
        if not host.local
        for url in (host.url, host.former_url)
        if url
    }
)
"""The vendors' hosts by ``host:port``. A local address may be any server."""
