"""`planrun doctor --crash-test`"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from planrun.cli.printing import complain, say, say_json
from planrun.testing.matrix import WHERE, Cut, matrix
from planrun.views.words import one_line, plural

_EVERY = 25  # cuts from one word of progress to the next, where there is no terminal


def crash_test(path: Path, format: str) -> bool:
    """Cut, resume, compare; print a table. True where every cut comes to what the whole run came to. Raises SessionDamaged."""
    cuts: list[Cut] = []
    for cut in matrix(path):
        cuts.append(cut)
        if cut.faults:
            complain(f"{cut}: {one_line(cut.faults[0], 300)}")
        elif len(cuts) % _EVERY == 0:
            complain(f"{plural(len(cuts), 'cut')} so far, at record {cut.record}")
    failed = [cut for cut in cuts if cut.faults]
    if format == "json":
        say_json({"session": path.stem, "cuts": len(cuts), "failed": [_json(cut) for cut in failed]})
    else:
        say(_table(cuts))
        for cut in failed:
            say("\n".join([f"{cut}:", *(f"  {one_line(fault, 300)}" for fault in cut.faults)]))
    complain(f"{plural(len(cuts), 'cut')}, {len(failed)} failed")
    return not failed


def _table(cuts: list[Cut]) -> str:
    """For each type of record, how many cuts came to the same, by where it was cut."""
    tried, good = Counter((c.type, c.where) for c in cuts), Counter((c.type, c.where) for c in cuts if not c.faults)
    rows: list[tuple[str, ...]] = [("LAST RECORD", "CUT IN HALF", "NO NEWLINE", "WHOLE")]
    rows += [(t, *(f"{good[t, w]}/{tried[t, w]}" for w in WHERE)) for t in dict.fromkeys(c.type for c in cuts)]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows)


def _json(cut: Cut) -> dict[str, object]:
    return {"record": cut.record, "cut": cut.where, "type": cut.type, "faults": list(cut.faults)}
