"""Models: their names, requests and completions, and the protocol of a client."""

from pytest_upskill.models.completion import AgentRun as AgentRun
from pytest_upskill.models.completion import AgentTurn as AgentTurn
from pytest_upskill.models.completion import Completion as Completion
from pytest_upskill.models.completion import ToolCall as ToolCall
from pytest_upskill.models.model import Model as Model
from pytest_upskill.models.model import ModelError as ModelError
from pytest_upskill.models.model import parse_model as parse_model
from pytest_upskill.models.request import AgentTask as AgentTask
from pytest_upskill.models.request import Client as Client
from pytest_upskill.models.request import InstalledSkill as InstalledSkill
from pytest_upskill.models.request import ProviderError as ProviderError
from pytest_upskill.models.request import Request as Request
from pytest_upskill.models.request import RunLimits as RunLimits
from pytest_upskill.models.request import Tool as Tool
from pytest_upskill.models.request import ToolResult as ToolResult
from pytest_upskill.models.request import Turn as Turn
