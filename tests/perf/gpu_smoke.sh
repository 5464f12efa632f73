#!/bin/bash
# gpu_smoke.sh - build src/gpu alone and try it on the attached device.
#
#   bash tests/perf/gpu_smoke.sh [--need-device]
#
# Needs a C compiler, the NVIDIA driver and libnvrtc; no Lua, no make. Without a device
# it says why and passes, unless --need-device is given.
set -e
cd "$(dirname "$0")/../.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
${CC:-cc} -std=c11 -O2 -g -Isrc -D_DEFAULT_SOURCE -D_XOPEN_SOURCE=700 -Wall -Wextra \
	tests/perf/gpu_smoke.c src/gpu/*.c src/base/*.c -o "$dir/gpu_smoke" -lpthread -ldl -lm
"$dir/gpu_smoke" "$@"
