"""The table of ./dev bench, and how its figures grow."""
import math
import re
import statistics

BASE = "floor-asio"


def table(results, names):
    rows = [("", *names)]
    for figure, by_name in results.items():
        base = statistics.median(by_name[BASE]) if BASE in by_name else None
        cells = []
        for name in names:
            median = statistics.median(by_name[name]) if name in by_name else None
            ratio = f" ({median / base:.2f}x)" if median is not None and base and name != BASE else ""
            cells.append("-" if median is None else f"{median:.2f}{ratio}")
        rows.append((figure, *cells))
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(cell.rjust(width) if i else cell.ljust(width) for i, (cell, width) in enumerate(zip(row, widths)))
                     for row in rows)


def exponent(points):
    """The slope of the line through the logarithms: y grows as x to this power."""
    xs, ys = [math.log(x) for x, _ in points], [math.log(y) for _, y in points]
    mean_x, mean_y = statistics.mean(xs), statistics.mean(ys)
    return sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys)) / sum((x - mean_x) ** 2 for x in xs)


SIZED = (  # how a figure's name tells its size, and what grows
    (re.compile(r"CPU-s/GB (\d+) KiB$"), "CPU of a message by its size", 1, lambda size, value: value * size),
    (re.compile(r"CPU-s/GB 16 KiB, (\d+) rooms"), "CPU of a GB by rooms", 0, lambda size, value: value),
    (re.compile(r"KB RSS/parked mac, (\d+)"), "RSS by parked macs", 1, lambda size, value: value * size),
    (re.compile(r"KB kernel/parked mac, (\d+)"), "kernel memory by parked macs", 1, lambda size, value: value * size),
    (re.compile(r"round trip p50 us, .*\((\d+)/s\)"), "round trip p50 by messages a second", 0, lambda size, value: value),
)


def growth(results, name="tandemd"):
    """Lines: what grows, by which power of what, measured at three sizes or more."""
    lines = []
    for pattern, what, fair, total in SIZED:
        points = []
        for figure, by_name in results.items():
            if (match := pattern.match(figure)) and name in by_name:
                size = int(match.group(1))
                points.append((size, total(size, statistics.median(by_name[name]))))
        points = [(x, y) for x, y in sorted(points) if y > 0]
        if len(points) >= 3:
            sizes = ", ".join(f"{x:,}" for x, _ in points)
            lines.append(f"{what} ({sizes}): exponent {exponent(points):.2f}, {fair} is even")
    return lines
