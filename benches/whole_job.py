#!/usr/bin/env python3
"""Times whole processes on one pair of generated files, side by side, and checks the answer against the seeded truth.

    benches/whole_job.py --bin target/release/paysweep [--pairs 1000000] [--rounds 5] [--run] [--keep DIR]

`diff` alternates with a plain full outer join of the same two files in DuckDB (`pip install duckdb`), so that the noise
of the machine meets both; ratios of medians are what counts. `--run` also times a first and a second `run` into SQLite.
Memory is the peak resident size of the child process.
"""

import argparse
import datetime
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

AS_OF = "2026-03-10T12:00:00Z"
DUCK = """
import duckdb, sys
o, i, out = sys.argv[1:]
duckdb.connect().execute(f'''copy (
  select coalesce(o.reference, i.intent_id) as key,
         case when o.reference is null then 'missing_processor' when i.intent_id is null then 'missing_local'
              when o.amount_minor <> i.amount_minor or o.currency <> i.currency then 'amount_mismatch'
              when o.status <> i.status then 'status_behind' else 'ok' end as class
  from read_csv('{o}', header = true, all_varchar = true) o
  full outer join read_csv('{i}', header = true, all_varchar = true) i on o.reference = i.intent_id
  where not (o.reference is not null and i.intent_id is not null and o.amount_minor = i.amount_minor
             and o.status = i.status and o.currency = i.currency)) to '{out}' (header)''')
"""


def generate(folder, pairs):
    """Keys in different order on both sides; per thousand pairs one missing, one of another amount, one pending."""
    start = datetime.datetime(2026, 3, 9)
    order = list(range(pairs))
    random.Random(7).shuffle(order)
    truth = {"missing_processor": 0, "amount_mismatch": 0, "status_behind": 0}

    def row(n):
        at = start + datetime.timedelta(milliseconds=n * 43_200_000 // pairs)
        return 100 + n * 7919 % 99_900, at.isoformat(timespec="seconds") + "Z"

    with open(folder / "operations.csv", "w") as out:
        out.write("operation_id,kind,status,amount_minor,fee_minor,net_minor,currency,occurred_at,reference,"
                  "parent_id,object_id,payout_id,description\n")
        for n in range(pairs):
            amount, at = row(n)
            if n % 1000 == 17:
                truth["missing_processor"] += 1
                continue
            if n % 1000 == 18:
                truth["amount_mismatch"] += 1
                amount += 1
            fee = amount * 29 // 1000 + 30
            out.write(f"ch_{n:012d},charge,succeeded,{amount},{fee},{amount - fee},EUR,{at},ORD-{n:010d},,,"
                      f"po_{n // 5000:06d},card payment\n")
        # A later row, so that the feed covers the due time of every intent.
        out.write("fee_1,fee,succeeded,-1,0,-1,EUR,2026-03-10T00:00:00Z,,,,,\n")
    with open(folder / "intents.csv", "w") as out:
        out.write("intent_id,idempotency_key,kind,amount_minor,currency,status,created_at,processor_ref,attempt\n")
        for n in order:
            amount, at = row(n)
            status = "pending" if n % 1000 == 19 else "succeeded"
            truth["status_behind"] += n % 1000 == 19
            out.write(f"ORD-{n:010d},key-{n:016d},charge,{amount},EUR,{status},{at},ch_{n:012d},1\n")
    (folder / "paysweep.toml").write_text(
        '[store]\nurl = "sqlite://paysweep.db"\n[source.shop]\nkind = "csv"\nprofile = "canonical"\n'
        'files = ["operations.csv"]\nstart = "2026-03-09T00:00:00Z"\n[intents]\nkind = "csv"\nfile = "intents.csv"\n'
        "[guards]\nmax_repairs = 1000000\n")
    return truth


def timed(command, folder, out):
    before = time.monotonic()
    with open(out, "wb") as stdout:
        child = subprocess.Popen(command, cwd=folder, stdout=stdout)
        _, status, usage = os.wait4(child.pid, 0)
    return time.monotonic() - before, usage.ru_maxrss / 1024, os.waitstatus_to_exitcode(status)


def show(label, samples):
    seconds = [sample[0] for sample in samples]
    print(f"{label:<28} median {statistics.median(seconds):6.2f} s  (min {min(seconds):.2f}, max {max(seconds):.2f})"
          f"   peak {max(sample[1] for sample in samples):6.0f} MB")


def check(path, truth):
    report = json.loads(Path(path).read_bytes())
    assert report["summary"]["by_class"] == truth, (report["summary"]["by_class"], truth)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--run", action="store_true")
    options = parser.parse_args()
    binary = str(Path(options.bin).resolve())
    with tempfile.TemporaryDirectory(prefix="paysweep-bench-") as name:
        folder = Path(name)
        truth = generate(folder, options.pairs)
        ours, theirs = [], []
        diff = [binary, "diff", "--operations", "operations.csv", "--intents", "intents.csv", "--as-of", AS_OF, "-f", "json"]
        duck = [sys.executable, "-c", DUCK, "operations.csv", "intents.csv", "duck.csv"]
        for _ in range(options.rounds):
            ours.append(timed(diff, folder, folder / "diff.json"))
            assert ours[-1][2] == 1, "the generated files hold breaks"
            check(folder / "diff.json", truth)
            theirs.append(timed(duck, folder, folder / "duck.out"))
            assert theirs[-1][2] == 0, "DuckDB is installed"
        show(f"diff, {options.pairs} pairs", ours)
        show("DuckDB, plain outer join", theirs)
        ratio = statistics.median(s[0] for s in ours) / statistics.median(s[0] for s in theirs)
        print(f"diff takes {ratio:.2f} x the time of DuckDB's plain join")
        if options.run:
            run = [binary, "run", "--as-of", AS_OF, "-f", "json"]
            show("first run into SQLite", [timed(run, folder, folder / "first.json")])
            check(folder / "first.json", truth)
            show("second run, same files", [timed(run, folder, folder / "second.json")])
            second = json.loads((folder / "second.json").read_bytes())
            assert second["repairs"] == [], "nothing is written twice"


if __name__ == "__main__":
    main()
