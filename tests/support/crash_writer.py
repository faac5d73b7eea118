"""A process that updates stores until it is killed, started by `start_writers`.

Every line on standard input is a job in JSON. A child process, which has everything imported
already, opens the store and makes updates, and writes the number of each to standard output once it
is acknowledged. It is killed after ``delay`` seconds, and "dead" ends the job.
"""

import json
import os
import signal
import sys
import time
import traceback

import numpy as np
import payload_steps
import usearch.index  # noqa: F401, imported once for all children
from scipy.spatial import cKDTree  # noqa: F401
from stores import SORTS, rejected, step

import dynhac
import dynhac.store


def say(text):
    os.write(1, f"{text}\n".encode())


def write(job):
    kind, parameters = SORTS[job["sort"]]
    model = dynhac.open(
        job["path"],
        kind,
        durability=job["durability"],
        snapshot_bytes=3000,
        snapshot_seconds=0.02,
        **parameters,
    )
    rng = np.random.default_rng(job["chance"])
    say(f"opened {model.update_number}")
    while True:
        choice = rng.random()
        if choice < 0.05:
            rejected(model)
        elif choice < 0.15:
            with model.batch():
                for _ in range(job["group"]):
                    step(model, job["sort"], job["seed"], model.update_number + 1)
        else:
            step(model, job["sort"], job["seed"], model.update_number + 1)
        say(model.update_number)
        if choice > 0.99:
            model.close()
            say("closed")
            model = dynhac.open(job["path"], snapshot_bytes=3000)


def main():
    for line in sys.stdin:
        job = json.loads(line)
        child = os.fork()
        if not child:
            try:
                if job["sort"] in payload_steps.SORTS:
                    payload_steps.write(job, say)
                else:
                    write(job)
            except BaseException:
                say("failed " + json.dumps(traceback.format_exc()))
            os._exit(1)
        time.sleep(job["delay"])
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        say("dead")


if __name__ == "__main__":
    main()
