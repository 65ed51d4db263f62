#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Unmounts and ends what demo.py left running, and removes its namespaces and its folder."""
from installation import take_away

HOME = "/var/tmp/pnfsrdma-ha"
PREFIX = "pnfsrdma-ha"

if __name__ == "__main__":
    take_away(PREFIX, HOME)
    print(f"The demo is stopped and {HOME} is gone.")
