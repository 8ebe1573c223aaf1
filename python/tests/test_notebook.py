"""docs/notebook.ipynb is carried out, and its outputs are those that stand there.

``target/python/bin/python python/tests/test_notebook.py`` writes them.
"""

from __future__ import annotations

import base64
import struct
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


def without_dots(data: dict[str, Any]) -> dict[str, Any]:
    """An output; of a picture it is looked at that it is one, as its dots depend on the host's fonts."""
    return {kind: is_picture(text) if kind == "image/png" else text for kind, text in data.items()}


def is_picture(text: str) -> bool:
    """Whether it is a PNG in which something can be seen."""
    head = base64.b64decode(text)[:24]
    width, height = struct.unpack(">II", head[16:24])
    return head.startswith(b"\x89PNG") and min(width, height) > 80


def outputs(notebook: Any) -> list[list[dict[str, Any]]]:
    """What stands below each cell of code."""
    found = []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            found.append([without_dots(output.get("data", {"text": output.get("text")})) for output in cell.outputs])
    return found


def test_the_notebook_is_true() -> None:
    shown = outputs(nbformat.read(NOTEBOOK, as_version=4))
    pictures = [output for cell in shown for output in cell if output.get("image/png")]
    assert len(shown) >= 6 and sum(bool(output) for output in shown) >= 4 and len(pictures) == 3
    assert outputs(carried_out()) == shown


if __name__ == "__main__":
    nbformat.write(carried_out(), NOTEBOOK)
