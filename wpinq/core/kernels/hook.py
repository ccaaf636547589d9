"""Put the compiled kernels into the wheel, where there is a C compiler; without one the wheel is pure Python."""

from __future__ import annotations

import os
import runpy
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class KernelsHook(BuildHookInterface[Any]):  # type: ignore[misc]  # hatchling is there when a wheel is built only
    """Compiles `wpinq/core/kernels` in its place, for wheels and for editable installs."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and mark the wheel as one for this platform and any Python."""
        build = runpy.run_path(str(Path(self.root, "wpinq", "core", "kernels", "build.py")))
        if self.target_name != "wheel" or (made := build["compile_kernels"]()) is None:
            return
        here = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        platform = os.environ.get("WPINQ_PLATFORM", here)  # `.ci/wheels` compiles for others too
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"
        build_data["artifacts"].append(str(made.relative_to(self.root)))
