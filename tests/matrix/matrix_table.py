"""The results as Markdown."""
import dataclasses
import json
import os
import re

from matrix_check import Result

BEGIN, END = "<!-- matrix -->\n", "<!-- /matrix -->\n"


def _cell(text):
    return re.sub(r"\s+", " ", str(text)).replace("|", "\\|").strip() or "-"


def _line(cells):
    return "| " + " | ".join(_cell(cell) for cell in cells) + " |"


def outcome(result):
    if result.blocked:
        return "does not run: " + result.blocked
    if result.wrong or result.missing:
        return "**wrong**: " + "; ".join(result.wrong + ["missing: " + ", ".join(result.missing)] * bool(result.missing))
    return "runs"


def verdicts(results):
    lines = [_line(("what", "versions", "outcome", "healthy job", "planted mistake")), "|---|---|---|---|---|"]
    for result in results:
        versions = ", ".join("%s %s" % item for item in result.versions.items())
        lines.append(_line((result.name, versions, "; ".join([outcome(result)] + result.notes), result.healthy,
                            "; ".join(result.mistakes))))
    return lines


def facts(results):
    """One column a fact that any row has."""
    known = [result for result in results if result.facts]
    names = [name for name in (known[0].facts if known else ()) if any(result.facts.get(name) for result in known)]
    short = {"config": "yes", "structure": "yes", "data-parallel ranks": "yes", "versions": "yes"}
    lines = [_line(["what"] + names), "|---" * (len(names) + 1) + "|"]
    for result in known:
        lines.append(_line([result.name] + [short.get(name, result.facts.get(name)) if result.facts.get(name) else "-"
                                            for name in names]))
    return lines


def direct(results):
    """loss.backward() by version and stage."""
    known = [result for result in results if result.direct]
    cases = list(dict.fromkeys(case for result in known for case in result.direct))
    lines = [_line(["what"] + ["stage " + case for case in cases]), "|---" * (len(cases) + 1) + "|"]
    return lines + [_line([result.name] + [result.direct.get(case, "-") for case in cases]) for result in known]


def page(results):
    """What stands between the marks of docs/versions.md."""
    days = sorted({result.date for result in results})
    parts = ["Measured %s on the simulated GPU, 2 ranks.\n" % " to ".join(dict.fromkeys((days[0], days[-1])))]
    parts.append("\n".join(verdicts(results)) + "\n")
    parts.append("What the probe recorded on rank 0 of the healthy job:\n\n" + "\n".join(facts(results)) + "\n")
    if any(result.direct for result in results):
        parts.append("What `loss.backward()` in place of `engine.backward(loss)` does:\n\n" + "\n".join(direct(results)) + "\n")
    return "\n".join(parts)


def _path(folder, name):
    return os.path.join(folder, re.sub(r"\W+", "-", name) + ".json")


def store(folder, result):
    os.makedirs(folder, exist_ok=True)
    with open(_path(folder, result.name), "w") as file:
        json.dump(dataclasses.asdict(result), file)


def stored(folder, name):
    """The last result of a row, None if it never ran."""
    try:
        with open(_path(folder, name)) as file:
            return Result(**json.load(file))
    except FileNotFoundError:
        return None


def put(text, made):
    """`text` with what stands between the marks replaced."""
    before, found, rest = text.partition(BEGIN)
    old, closed, after = rest.partition(END)
    if not found or not closed:
        raise ValueError("the page has no place for the results")
    return before + BEGIN + made + END + after
