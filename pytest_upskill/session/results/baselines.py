"""The baselines of a session: read, written anew, and those that can be deleted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_upskill.cells.cell import Cell
from pytest_upskill.cells.trial_group import TrialGroup
from pytest_upskill.cells.trigger_cell import TriggerCell
from pytest_upskill.session.options.settings import Settings
from pytest_upskill.trials.trial import runs_of

if TYPE_CHECKING:
    from pytest_upskill.cells.baseline_folder import Baselines
    from pytest_upskill.cells.baseline_update import Update


def baselines_of(settings: Settings, folder: Path) -> Baselines | None:
    """Return the baselines of the chosen models in a folder, None if none are needed.

    Raises:
        pytest.UsageError: A baseline cannot be used.
    """
    if settings.compare != "baseline" and not settings.baseline_update:
        return None
    # Imported here: most sessions use no baselines.
    from pytest_upskill.cells.baseline import BaselineError
    from pytest_upskill.cells.baseline_folder import read_baselines

    try:
        models = [model.label for model in settings.models]
        return read_baselines(folder, models, settings.project)
    except BaselineError as error:
        raise pytest.UsageError(str(error)) from None


def write_baselines(
    settings: Settings, cells: Sequence[Cell], trigger_cells: Sequence[TriggerCell]
) -> list[Update]:
    """Write the baselines of all cells, and return the outcome of each."""
    from pytest_upskill.cells.baseline_update import (
        Update,
        baseline_of,
        trigger_baseline_of,
        update_baselines,
    )

    updates = [
        *update_baselines(
            cells,
            settings.baselines,
            baseline_of,
            runs={model.label: runs_of(model, settings.runs) for model in settings.models},
        ),
        *update_baselines(
            trigger_cells,
            settings.trigger_baselines,
            trigger_baseline_of,
            # Each run shows the catalogue in another order: none is a copy of another.
            runs={model.label: settings.runs for model in settings.models},
            what="trigger baseline",
        ),
    ]
    return updates or [Update(text="no baseline written: nothing was measured")]


def orphans(stored: Iterable[tuple[Baselines | None, Sequence[TrialGroup]]]) -> Iterator[str]:
    """Yield a line for each baseline file that can be deleted.

    Args:
        stored: Baselines, None if none were read, and the cells of the session that they are for.
    """
    for baselines, cells in stored:
        if baselines is None:
            continue
        from pytest_upskill.cells.baseline_folder import key_of

        for each, reason in baselines.unused([key_of(cell) for cell in cells]):
            key, file = each.key, each.file
            yield f"{key.skill} on {key.model}: {reason}: delete the baseline, {file}"
