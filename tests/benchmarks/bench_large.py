"""What each kind of question takes by rows: processor seconds and memory, measured, and what follows for larger data.

    python tests/benchmarks/bench_large.py --how-large --keep /data/made --json large.json
    python tests/benchmarks/bench_large.py --smoke

Files are those of `bench_processes.py`: a tenth as many users as rows, a fortieth as many pages, with heavy tails;
`--each` makes others. Each kind is asked at each size in one process, and in two, which tells what the first process
does alone (it proves the files, charges, adds up and answers) from what is cut by shares and keys. The law is that of
the two largest sizes,

    one process           S + a N
    P others and a first  S + f N + (S' + o N / P)

in processor seconds for N rows, with S and S' what a start takes; memory is M + b N in one process, up to half of what
`--memory` allows. What is beyond the largest size is reckoned by it, and says so.
"""

from __future__ import annotations

import json
import multiprocessing
import platform
import tempfile
from pathlib import Path

from bench_processes import WORKS, make, measure
from flags import flags

SIZES = (10**6, 10**7, 10**8)
RECKONED = (10**9, 10**10)
CORES = (1, 16, 200)


def line(points: list[tuple[int, float]]) -> tuple[float, float]:
    """What is there for no rows, and for each, by the two largest sizes."""
    (few, less), (many, more) = sorted(points)[-2:]
    each = max((more - less) / (many - few), 0.0)
    return max(less - each * few, 0.0), each


def law(found: dict[int, dict[str, dict[str, float]]]) -> dict[str, tuple[float, float]]:
    """The constants of one kind of question, from what was measured at each size in one process and in two."""
    return {
        "one": line([(rows, made["1"]["first"]) for rows, made in found.items()]),
        "first": line([(rows, made["2"]["first"]) for rows, made in found.items()]),
        "others": line([(rows, made["2"]["all"] - made["2"]["first"]) for rows, made in found.items()]),
        "memory": line([(rows, made["1"]["peak"]) for rows, made in found.items()]),
    }


def seconds(constants: dict[str, tuple[float, float]], rows: int, cores: int) -> float:
    """How long it takes where each process has a core of its own."""
    start, each = constants["one"]
    if cores == 1:
        return start + each * rows
    (start, each), (begun, work) = constants["first"], constants["others"]
    return start + each * rows + begun / 2 + work * rows / cores  # what two others took for their starts, each takes


def measured(
    sizes: list[int], runs: int, works: tuple[str, ...], keep: Path | None, each: tuple[int, int]
) -> dict[str, dict[int, dict]]:
    """Each kind at each size."""
    found: dict[str, dict[int, dict]] = {work: {} for work in works}
    for rows in sizes:
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made) if keep is None else keep / "-".join(map(str, (rows, *each)))
            folder.mkdir(exist_ok=True, parents=True)
            if not list(folder.glob("*.parquet")):
                maker = multiprocessing.get_context("spawn").Process(target=make, args=(folder, rows, each))
                maker.start()
                maker.join()
            for work, by in measure(folder, [1, 2], runs, works).items():
                found[work][rows] = by
    return found


def power(rows: int) -> str:
    """Ten to the how many; 10^6.3 for two million."""
    import math

    return f"10^{math.log10(rows):.3g}"


def show(found: dict[str, dict[int, dict]]) -> None:
    """Two tables: what was measured with the law, and what is reckoned by it."""
    sizes = list(next(iter(found.values())))
    heads = [f"{power(rows)} CPU s | MB" for rows in sizes]
    print(
        f"| question | {' | '.join(heads)} | CPU s for 10^6 more: one | first of several | others | MB for 10^6 more |"
    )
    print("|---|" + "--:|" * (2 * len(sizes) + 4))
    for work, by in found.items():
        constants = law(by)
        cells = [f"{by[rows]['1']['first']:.1f} | {by[rows]['1']['peak']:.0f}" for rows in sizes]
        slopes = [f"{constants[name][1] * 10**6:.3f}" for name in ("one", "first", "others")]
        memory = constants["memory"][1] * 10**6
        print(f"| {work} | {' | '.join(cells)} | {' | '.join(slopes)} | {memory:.1f} |")
    print("\n| reckoned, seconds | " + " | ".join(f"{power(n)}, {c} cores" for n in RECKONED for c in CORES) + " |")
    print("|---|" + "--:|" * (len(RECKONED) * len(CORES)))
    for work, by in found.items():
        constants = law(by)
        cells = [f"{seconds(constants, rows, cores):,.0f}" for rows in RECKONED for cores in CORES]
        print(f"| {work} | {' | '.join(cells)} |")


def main() -> None:
    parser = flags(__doc__, "100,000 and 200,000 rows, one kind")
    parser.add_argument("--how-large", action="store_true", help="10^6, 10^7 and 10^8 rows")
    parser.add_argument("--rows", type=int, nargs="+", default=[10**6, 10**7], help="at least two sizes")
    parser.add_argument("--each", type=int, nargs=2, default=(10, 40), help="rows for each user, and for each page")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--works", nargs="+", choices=WORKS, default=list(WORKS))
    parser.add_argument("--keep", type=Path, help="make the data here, or take what an earlier run made")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    sizes = [100_000, 200_000] if options.smoke else list(SIZES) if options.how_large else sorted(options.rows)
    works = ("counts of records",) if options.smoke else tuple(options.works)
    found = measured(sizes, options.runs, works, options.keep, tuple(options.each))
    print(f"{platform.machine()}, Python {platform.python_version()}, medians of {options.runs}")
    show(found)
    if options.json:
        told = {work: {"measured": by, "law": law(by)} for work, by in found.items()}
        options.json.write_text(json.dumps(told, indent=1))


if __name__ == "__main__":
    main()
