"""The bug report of a row's healthy job: `dshang issue` tells what the framework was told, and no secret of it."""
import json
import os
import re
import subprocess

import jobs

_ARGUMENTS = re.compile(r"^## TrainingArguments\n.*?^(`{3,})json\n(.*?)^\1$", re.M | re.S)
_FIRST_REPORT = 300          # seconds; it asks the installed programs, and they import torch


def made(directory, output, settings):
    """The Markdown of the report."""
    env = dict(os.environ, **settings)
    done = subprocess.run([os.path.join(jobs.BUILD, "dshang"), "issue", directory, "--output", output], env=env,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True,
                          timeout=_FIRST_REPORT)
    if done.returncode not in (0, 1):         # 1: no archive, for want of tar or zstd
        raise RuntimeError(done.stdout.strip()[:300])
    with open(output + ".md") as file:
        return file.read()


def complaints(markdown, wanted, secret):
    """What is wrong with the report: arguments that it does not tell, a secret that it does."""
    found = _ARGUMENTS.search(markdown)
    if not found:
        return ["the bug report has no TrainingArguments"]
    told = json.loads(found.group(2))
    wrong = ["the bug report tells %s=%r" % (key, told.get(key)) for key, value in wanted.items() if told.get(key) != value]
    return wrong + ["the bug report tells a secret"] * bool(secret and secret in markdown)
