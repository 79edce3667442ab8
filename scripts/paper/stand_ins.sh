#!/bin/sh
. "$(dirname "$0")/run.sh"
