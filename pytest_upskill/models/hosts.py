"""The table of hosts that are known by name: to add one, add a row.

Base URLs and key variables are those of the vendors' own SDKs and documentation, which
``docs/models.md`` lists by row.
"""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Literal
from urllib.parse import urlsplit

WireFormat = Literal["anthropic", "openai"]
"""Format of requests and replies: Anthropic's Messages or OpenAI's Chat Completions."""


@dataclass(frozen=True, slots=True)
class KnownHost:
    """A host that a prefix of a model's name stands for."""

    prefix: str
    """Also a name of the host in genai-prices, or one that `answers/prices.py` translates."""
    title: str
    url: str
    """Base URL."""
    keys: tuple[str, ...] = ()
    """Environment variables of its key, of which the first that is set is used."""
    _: KW_ONLY
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
    """Ends of the names of hosts of a cloud, where each customer has one; empty for all others."""
    refuses: tuple[str, ...] = ()
    """Parameters that it refuses for every model."""
    seed: str = "seed"
    """Its name for the seed."""
    nested_effort: bool = False
    """Whether it takes the effort as ``{"reasoning": {"effort": …}}``."""


HOSTS = (
    KnownHost(
        "anthropic",
        "Anthropic",
        "https://api.anthropic.com",
        ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
        wire="anthropic",
        client="AsyncAnthropic",
        url_variable="ANTHROPIC_BASE_URL",
        refuses=("temperature", "top_p", "seed"),
    ),
    KnownHost(
        "openai",
        "OpenAI",
        "https://api.openai.com/v1",
        ("OPENAI_API_KEY",),
        client="AsyncOpenAI",
        url_variable="OPENAI_BASE_URL",
    ),
    KnownHost(
        "azure",
        "Azure OpenAI",
        "https://resource.openai.azure.com",
        ("AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN"),
        client="AsyncAzureOpenAI",
        url_variable="AZURE_OPENAI_ENDPOINT",
        needs=("AZURE_OPENAI_ENDPOINT",),
        sign_in="AZURE_OPENAI_API_KEY, AZURE_OPENAI_AD_TOKEN, or az login",
        domains=(".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com"),
    ),
    KnownHost(
        "bedrock",
        "Amazon Bedrock",
        "https://bedrock-runtime.region.amazonaws.com",
        wire="anthropic",
        client="AsyncAnthropicBedrock",
        url_variable="ANTHROPIC_BEDROCK_BASE_URL",
        modules=("boto3",),
        domains=(".amazonaws.com",),
        sign_in="AWS_BEARER_TOKEN_BEDROCK, AWS_ACCESS_KEY_ID, AWS_PROFILE, or aws sso login",
        refuses=("seed",),
    ),
    KnownHost(
        "vertex",
        "Google Vertex AI",
        "https://region-aiplatform.googleapis.com/v1",
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
        "openrouter",
        "OpenRouter",
        "https://openrouter.ai/api/v1",
        ("OPENROUTER_API_KEY",),
        nested_effort=True,
    ),
    KnownHost("groq", "Groq", "https://api.groq.com/openai/v1", ("GROQ_API_KEY",)),
    KnownHost("together", "Together AI", "https://api.together.ai/v1", ("TOGETHER_API_KEY",)),
    KnownHost("deepseek", "DeepSeek", "https://api.deepseek.com/v1", ("DEEPSEEK_API_KEY",)),
    KnownHost(
        "mistral", "Mistral", "https://api.mistral.ai/v1", ("MISTRAL_API_KEY",), seed="random_seed"
    ),
    KnownHost(
        "gemini",
        "Google Gemini",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    ),
    KnownHost("hf", "Hugging Face", "https://router.huggingface.co/v1", ("HF_TOKEN",)),
    # The default of llama.cpp became 9931 in autumn 2026; the docs start it on this port.
    KnownHost("llamacpp", "llama.cpp", "http://127.0.0.1:8080/v1", local=True),
    KnownHost("ollama", "Ollama", "http://127.0.0.1:11434/v1", local=True),
    KnownHost("lmstudio", "LM Studio", "http://127.0.0.1:1234/v1", local=True),
    KnownHost("vllm", "vLLM", "http://127.0.0.1:8000/v1", local=True),
)

BY_PREFIX: Mapping[str, KnownHost] = {host.prefix: host for host in HOSTS}

PLATFORMS = frozenset(host.prefix for host in HOSTS if host.domains)
"""Prefixes of clouds that serve the models of vendors to their own customers."""

BY_NETLOC: Mapping[str, KnownHost] = {
    urlsplit(host.url).netloc: host
    for host in HOSTS
    if not host.local and host.prefix not in PLATFORMS
}
"""The vendors' hosts by ``host:port``. A local address may be any server."""
