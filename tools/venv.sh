#!/bin/sh
# venv.sh PYTHON [FOLDER]: make .venv, or FOLDER, also where Debian has split pip's bootstrap off into a package of its own.
set -eu
python=$1
folder=${2:-.venv}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "adac needs Python 3.11 or newer; name one with: make PYTHON=python3.12" >&2
    exit 2
}
if ! "$python" -c 'import ensurepip' 2>/dev/null; then
    version=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
    echo "installing Debian's $version, without which Python cannot make a .venv" >&2
    if [ "$(id -u)" = 0 ]; then sudo=; else sudo=sudo; fi
    $sudo apt-get -qq update && $sudo apt-get -qq install -y "$version" >/dev/null || {
        echo "please install $version and run make again" >&2
        exit 2
    }
fi
rm -rf "$folder"
"$python" -m venv "$folder"
