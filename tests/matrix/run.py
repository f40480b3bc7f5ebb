"""Runs the matrix; scripts/matrix starts it.

Every row is checked on simulated GPUs with the real packages: a healthy job must be silent and give the same losses as
without dshang, a planted mistake must be explained, and the facts of the row must have been recorded.
"""
import argparse
import datetime
import os
import shutil
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "e2e")]

import jobs  # noqa: E402
import matrix_check  # noqa: E402
import matrix_packages  # noqa: E402
import matrix_rows  # noqa: E402
import matrix_table  # noqa: E402

PAGE = os.path.join(jobs.ROOT, "docs", "versions.md")
CACHE = os.environ.get("MATRIX_CACHE", os.path.join(jobs.ROOT, "build", "matrix"))
RESULTS = os.path.join(CACHE, "results")


def arguments(rows):
    parser = argparse.ArgumentParser(prog="scripts/matrix", description=__doc__.split("\n\n")[1])
    parser.add_argument("rows", nargs="*", help="beginnings of the rows' names (default: all)")
    parser.add_argument("--list", action="store_true", help="only names the rows")
    parser.add_argument("--without-direct", action="store_true", help="do not try loss.backward() in each stage")
    parser.add_argument("--keep", action="store_true", help="keep the folders of the jobs")
    parser.add_argument("--update-page", action="store_true",
                        help="write the results into docs/versions.md, with the last ones of the rows that did not run")
    args = parser.parse_args()
    chosen = [row for row in rows if not args.rows or any(row.name.startswith(name) for name in args.rows)]
    if not chosen:
        parser.error("no such row; known: " + ", ".join(row.name for row in rows))
    return args, chosen


def say(text):
    print(text, flush=True)


def check(row, args, work):
    result = matrix_check.Result(row.name, date=datetime.date.today().isoformat())
    say(row.name)
    try:
        # A frame under site-packages is a library's, one elsewhere the user's.
        folder = os.path.join(CACHE, "-".join(row.packages), "site-packages") if row.packages else ""
        if folder:
            matrix_packages.installed(folder, row.packages)
    except RuntimeError as error:
        result.blocked = str(error).strip().splitlines()[-1]
        return result
    result.versions = matrix_packages.versions(folder, row.told + ("torch",))
    runner = matrix_check.Runner(row, folder, work, say)
    matrix_check.check_healthy(runner, result)
    if result.blocked:
        return result
    for number, mistake in enumerate(row.mistakes):
        matrix_check.check_mistake(runner, result, mistake, number)
    if row.direct and not args.without_direct:
        matrix_check.check_direct(runner, result)
    return result


def main():
    rows = matrix_rows.rows()
    args, chosen = arguments(rows)
    if args.list:
        say("\n".join(row.name for row in chosen))
        return 0
    results, work, begin = [], tempfile.mkdtemp(prefix="matrix-"), time.monotonic()
    for number, row in enumerate(chosen):
        results.append(check(row, args, os.path.join(work, "%02d" % number)))
        matrix_table.store(RESULTS, results[-1])
        say("  %s" % matrix_table.outcome(results[-1]))
    say("\n" + matrix_table.page(results))
    if args.update_page:
        every = [matrix_table.stored(RESULTS, row.name) for row in rows]
        with open(PAGE) as file:
            text = matrix_table.put(file.read(), matrix_table.page([result for result in every if result]))
        with open(PAGE, "w") as file:
            file.write(text)
    bad = [result.name for result in results if not result.good]
    if args.keep or bad:
        say("the jobs' folders are kept in " + work)
    else:
        shutil.rmtree(work)
    say("%d rows in %d s" % (len(results), time.monotonic() - begin))
    say("%d passed, %d failed" % (len(results) - len(bad), len(bad)))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
