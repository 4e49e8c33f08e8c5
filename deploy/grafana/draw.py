#!/usr/bin/python3
"""Draws tandem.json as docs/images/dashboard.svg: each panel where it stands, with its title and what it shows. The curves are
made up; the picture is to show the layout to somebody without a Grafana at hand.

    deploy/grafana/draw.py [--check]        --check: exit 1 where the picture is not that of the dashboard"""
import html
import json
import math
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
PICTURE = HERE.parent.parent / "docs" / "images" / "dashboard.svg"
CELL_W, CELL_H, GAP, TOP = 48, 26, 6, 52
COLOURS = ("#6ea8ff", "#ffa657", "#56d4a8", "#d29bf0", "#ff85ad", "#5cd0dc")


def text(x, y, words, size, colour="#e8ebef", extra=""):
    return f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}" fill="{colour}"{extra}>{html.escape(words)}</text>'


def curve(x, y, w, h, seed, colour):
    points = []
    for i in range(41):
        wave = 0.5 + 0.28 * math.sin(i / 40 * 6.283 * (1 + seed % 3) + seed) + 0.12 * math.sin(i * 1.7 + seed * 2.1)
        points.append(f"{x + w * i / 40:.1f} {y + h * (1 - 0.9 * wave):.1f}")
    return f'<path d="M{"L".join(points)}" fill="none" stroke="{colour}" stroke-width="1.5"/>'


def legend_of(target):
    return target["legendFormat"].replace("{{", "<").replace("}}", ">")


def panel(p):
    g = p["gridPos"]
    x, y, w, h = g["x"] * CELL_W + GAP, TOP + g["y"] * CELL_H + GAP, g["w"] * CELL_W - GAP, g["h"] * CELL_H - GAP
    if p["type"] == "row":
        return [text(x, y + 15, p["title"], 14, "#a2abb6", ' font-weight="600"')]
    out = [f'<g><title>{html.escape(p["description"])}</title><rect x="{x}" y="{y}" width="{w}" height="{h}" rx="4" fill="#191d23" stroke="#2b313a"/>',
           text(x + 10, y + 18, p["title"], 12)]
    if p["type"] == "stat":
        out.append(text(x + w / 2, y + h - 28, "n", 28, COLOURS[p["id"] % 6], ' text-anchor="middle" font-weight="600"'))
    else:
        for i in range(3):
            line = y + 34 + i * (h - 66) / 2
            out.append(f'<line x1="{x + 10}" y1="{line:.0f}" x2="{x + w - 10}" y2="{line:.0f}" stroke="#2b313a"/>')
        for i, _ in enumerate(p["targets"][:3]):
            out.append(curve(x + 10, y + 34, w - 20, h - 66, p["id"] + i * 5, COLOURS[i]))
        legend = ", ".join(legend_of(t) for t in p["targets"])
        room = int(w / 6)
        out.append(text(x + 10, y + h - 12, legend if len(legend) <= room else legend[:room - 3] + "...", 10, "#a2abb6"))
    return out + ["</g>"]


def picture():
    board = json.loads((HERE / "tandem.json").read_text())
    width = 24 * CELL_W + GAP
    height = TOP + max(p["gridPos"]["y"] + p["gridPos"]["h"] for p in board["panels"]) * CELL_H + 2 * GAP
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="system-ui,sans-serif" role="img" '
             f'aria-label="Layout of the Grafana dashboard: {html.escape(", ".join(p["title"] for p in board["panels"] if p["type"] != "row"))}">',
             f'<rect width="{width}" height="{height}" fill="#101317"/>', text(GAP, 24, board["title"], 18, extra=' font-weight="650"'),
             text(GAP, 42, board["description"] + " Curves and numbers are made up.", 12, "#a2abb6")]
    for p in board["panels"]:
        lines += panel(p)
    return "\n".join(lines + ["</svg>"]) + "\n"


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        sys.exit(PICTURE.read_text() != picture())
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    PICTURE.write_text(picture())
