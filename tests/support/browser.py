"""The browser that tests are run in: Debian's chromium, or Google's."""

import os
import shutil

import pytest

#: A browser without a window.
ARGUMENTS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


def program() -> str:
    """The path of a browser.  Without one, a test is skipped on a laptop, and fails in CI."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    if os.environ.get("CI"):
        pytest.fail("chromium is missing; the tests in a browser must not be skipped in CI")
    pytest.skip("chromium is not installed: the tests in a browser are NOT run")
