#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""
totals.py JUNIT...: says why tests were skipped, which failed, and adds all up. The last line is
"N passed, N failed, N skipped". A report that is missing counts as a failure.
"""

import os
import re
import sys
import xml.etree.ElementTree as ET


def reason(case):
    """The line in which a skipped test says why."""
    output = case.findtext("system-out") or ""
    found = re.search(r"^.*\bskip\w*\b.*$", output, re.MULTILINE | re.IGNORECASE)
    return found.group(0).strip() if found else "gave no reason"


def skipped_parts(case):
    """What a program that passed left out: one line each."""
    return re.findall(r"^SKIP: (.*)$", case.findtext("system-out") or "", re.MULTILINE)


def main(reports):
    passed = failed = skipped = 0
    for report in reports:
        if not os.path.exists(report):
            print(f"FAILED: {os.path.dirname(report)}: not built, or its tests did not run")
            failed += 1
            continue
        for case in ET.parse(report).getroot().iter("testcase"):
            name = f"{os.path.dirname(report)}: {case.get('name')}"
            if case.find("skipped") is not None:
                skipped += 1
                print(f"skipped: {name}: {reason(case)}")
            elif case.find("failure") is not None or case.get("status") == "fail":
                failed += 1
                print(f"FAILED: {name}")
            else:
                passed += 1
                for line in skipped_parts(case):
                    skipped += 1
                    print(f"skipped: {name}: {line}")
    if not reports:
        failed += 1
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
