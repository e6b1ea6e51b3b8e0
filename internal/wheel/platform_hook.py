"""Puts the command parity of one platform into the wheel: GOPARITY_BINARY, built for GOPARITY_PLATFORM."""

import os

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# By GOOS/GOARCH. The command is linked statically, so that it runs with any C library; macOS 12 and
# Windows 10 are what Go 1.26 asks for.
TAGS = {
    "linux/amd64": "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
    "linux/arm64": "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
    "darwin/amd64": "macosx_12_0_x86_64",
    "darwin/arm64": "macosx_12_0_arm64",
    "windows/amd64": "win_amd64",
    "windows/arm64": "win_arm64",
}


class CustomBuildHook(BuildHookInterface):
    def initialize(self, version, build_data):
        binary = os.path.abspath(os.environ["GOPARITY_BINARY"])
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{TAGS[os.environ['GOPARITY_PLATFORM']]}"
        build_data["shared_scripts"][binary] = os.path.basename(binary)
