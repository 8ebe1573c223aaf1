"""docs/notebook.ipynb is carried out, and its outputs are those that stand there.

``target/python/bin/python python/tests/test_notebook.py`` writes them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).resolve().parents[2] / "docs" / "notebook.ipynb"


def carried_out() -> Any:
    """The notebook after all its cells were run, in the folder where it lies."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    client = NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(NOTEBOOK.parent)}})
    client.execute()
    for cell in notebook.cells:
        cell.metadata.clear()
        if cell.cell_type == "code":
            # Remarks name the place where the package lies.
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    notebook.metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3"}, "language_info": {"name": "python"}}
    return notebook


def named_alike(data: dict[str, Any]) -> dict[str, Any]:
    """An output without the number that a chart gets by chance."""
    return {kind: re.sub(r"altair-viz-[0-9a-f]+", "altair-viz", str(text)) for kind, text in data.items()}


def outputs(notebook: Any) -> list[list[dict[str, Any]]]:
    """What stands below each cell of code."""
    found = []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            found.append([named_alike(output.get("data", {"text": output.get("text")})) for output in cell.outputs])
    return found


def test_the_notebook_is_true() -> None:
    shown = outputs(nbformat.read(NOTEBOOK, as_version=4))
    assert len(shown) >= 6 and sum(bool(output) for output in shown) >= 4
    assert outputs(carried_out()) == shown


if __name__ == "__main__":
    nbformat.write(carried_out(), NOTEBOOK)
