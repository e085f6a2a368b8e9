#!/usr/bin/env python3
"""Fails when a test was skipped for another reason than the machine's hardware or a missing ../shared.

    check_skips.py JUNIT.xml        what `ctest --output-junit` wrote

Counts the tests that ctest calls skipped, not run or disabled, and the cases that unittest or pytest skipped within a
test that passed. Exit code: 0 none but allowed ones, 1 others, 2 wrong usage.
"""
import re
import sys
import xml.etree.ElementTree as ET

ALLOWED = re.compile(
    r"this host has (no (avx2|avx512|amx)|one vector ISA)\b|this system cannot populate memory|no \.\./shared|\.\./shared .*missing")
# unittest writes "test_x (m.C) ... skipped 'why'" and "OK (skipped=1)"; pytest -rs "SKIPPED [1] a.py:3: why";
# GoogleTest the message on the lines after "file:line: Skipped"; scripts "skipped: why".
REASON = re.compile(r"\.\.\. skipped ['\"](.*)['\"]$|^SKIPPED \[\d+\] (.*)$|^skipped: (.*)$|: Skipped\n(.*)$", re.M)
COUNT = re.compile(r"^OK \(.*?skipped=(\d+)|(\d+) skipped\b", re.M)


def skips(case):
    """The reasons of what was skipped in this test; one that is not told counts as "no reason given"."""
    output = case.findtext("system-out") or ""
    reasons = [next(group for group in found if group) or "" for found in REASON.findall(output) if any(found)]
    whole = case.get("status") in {"notrun", "disabled"} or case.find("skipped") is not None
    counted = sum(int(number) for found in COUNT.findall(output) for number in found if number)
    if (whole or counted) and not reasons:
        told = case.find("skipped")
        reasons = [(told.get("message") if told is not None else None) or "no reason given"]
    reasons += ["no reason given"] * (counted - len(reasons))
    return reasons if whole or counted else []


def faults(root):
    """(faults, how many were skipped for allowed reasons)"""
    found, allowed = [], 0
    for case in root.iter("testcase"):
        for reason in skips(case):
            if ALLOWED.search(reason) and " also " not in reason:
                allowed += 1
            else:
                found.append(f"{case.get('name')}: skipped: {reason}")
    return found, allowed


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    root = ET.parse(sys.argv[1]).getroot()
    found, allowed = faults(root)
    print("\n".join(found) or f"{len(list(root.iter('testcase')))} tests, {allowed} skips, all for want of hardware")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
