#!/bin/sh
# venv_on_top.sh BASE NEW: a virtual environment that sees all of BASE's packages and adds its own.
# pip counts BASE's as installed, so that nothing is fetched twice and versions are the same.
set -eu
packages() { "$1/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }
rm -rf "$2"
"$1/bin/python" -m venv "$2"
echo "import site; site.addsitedir('$(packages "$1")')" > "$(packages "$2")/base.pth"
