"""The process that reads a file of a stranger: this script, which the interpreter that asks runs once more, without its environment and without ``site``.

It loads the engine alone, by its path, before the engine goes into its sandbox: the package and what a folder of the user's holds are not imported here.
"""

from __future__ import annotations

import sys
from importlib.machinery import ExtensionFileLoader, ModuleSpec

_NAME = "flopwatch._native"


def main(module: str, words: list[str]) -> None:
    """Has the engine in the file ``module`` do what ``words`` say. It ends the process."""
    loader = ExtensionFileLoader(_NAME, module)
    engine = loader.create_module(ModuleSpec(_NAME, loader, origin=module))
    loader.exec_module(engine)
    engine.read_alone(words)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
