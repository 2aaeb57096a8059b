# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writes the page that sums up a scan: one file, which shows the pictures beside it and needs no network."""
import collections
import html
import os
import string
import urllib.parse

import common

PAGE = string.Template("""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>motion-scan: $title</title>
<style>
  body { font: 15px/1.4 system-ui, sans-serif; margin: 2em auto; max-width: 80em; padding: 0 1em; color: #222;
         background: #fff; }
  table { border-collapse: collapse; width: 100%; }
  th, td { padding: .3em .7em; text-align: right; border-bottom: 1px solid #ddd; font-variant-numeric: tabular-nums; }
  th:first-child, td:first-child { text-align: left; overflow-wrap: anywhere; }
  th:nth-child(2), td:nth-child(2), th:last-child, td:last-child { text-align: left; }
  th { position: sticky; top: 0; background: #fff; white-space: nowrap; }
  th button { font: inherit; font-weight: 600; border: 0; background: none; padding: 0; cursor: pointer; }
  th[aria-sort=ascending] button::after { content: " ▲"; }
  th[aria-sort=descending] button::after { content: " ▼"; }
  .failed, .crashed, .timeout { color: #b00020; }
  .missing { color: #777; }
  td.pictures { text-align: left; white-space: nowrap; }
  td.pictures img { height: 3.6em; margin-right: .3em; vertical-align: middle; }
  td.cuts a { display: block; white-space: nowrap; }
  td.share { background: linear-gradient(#bcd6f5, #bcd6f5) left / var(--share) 100% no-repeat; }
</style>
<h1>$title</h1>
<p>$facts</p>
<table>
<thead><tr>$heads</tr></thead>
<tbody>
$rows
</tbody>
</table>
<script>
  // A click on a heading sorts by its column; a second click reverses the order.
  const body = document.querySelector("tbody"), heads = [...document.querySelectorAll("th")];
  heads.forEach((head, column) => head.firstChild.addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    heads.forEach(other => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down < 0 ? "descending" : "ascending");
    const value = row => row.cells[column].dataset.value ?? row.cells[column].textContent;
    const order = (a, b) => a !== "" && b !== "" && !isNaN(a) && !isNaN(b) ? a - b : a.localeCompare(b);
    body.append(...[...body.rows].sort((a, b) => down * order(value(a), value(b))));
  }));
</script>
</html>
""")
HEADS = ("clip", "status", "duration, s", "frames", "motion", "objects", "first motion, s", "brightness", "frames/s",
         "pictures", "remark")
CUTS = "clips"  # an additional column before the last one, if clips were cut
REPORTS = "reports"  # the folder in which motion-report puts a folder for each clip


def number(value, digits):
    """A cell with a number, or an empty one."""
    if value is None:
        return '<td data-value=""></td>'
    return f'<td data-value="{value:.6g}">{value:.{digits}f}</td>'


def link(file):
    return html.escape(urllib.parse.quote(file))


def picture(begin, file):
    return f'<a href="{link(file)}"><img src="{link(file)}" loading="lazy" alt="motion at {begin:.1f} s"></a>'


def links(clip):
    """A cell with links to the clips of events; a click expands it."""
    files = "".join(f'<a href="{link(file)}">{begin:.1f} s</a>' for begin, file in clip["links"])
    more = f"<span>and {clip['cuts'] - len(clip['links'])} more</span>" if clip["cuts"] > len(clip["links"]) else ""
    cell = f'<details><summary>{clip["cuts"]}</summary>{files}{more}</details>' if files else ""
    return f'<td class="cuts" data-value="{clip["cuts"]}">{cell}</td>'


def remark(clip):
    """The remarks on a clip, for the reader of the page."""
    incomplete = f"incomplete: {clip['incomplete']}" if clip["status"] == "ok" and not clip["complete"] else None
    return "; ".join(filter(None, (incomplete, clip["error"], clip["track"], clip["cut_remark"])))


def row(clip, report, with_cuts):
    """`report`: the file of the clip's report, or None. `with_cuts`: whether there is a column of clips of events."""
    frames = clip["frames"] or 0
    share = clip["motion_frames"] / frames if frames else None
    motion = number(None, 0) if share is None else \
        f'<td class="share" style="--share: {100 * share:.0f}%" data-value="{share:.6g}">{100 * share:.0f} %</td>'
    name = html.escape(clip["clip"])
    name = f'<a href="{link(report)}">{name}</a>' if report else name
    return (f'<tr><td>{name}</td><td class="{clip["status"]}">{clip["status"]}</td>'
            f'{number(clip["duration"], 1)}{number(clip["frames"], 0)}{motion}'
            f'{number(clip["objects"] if frames else None, 0)}'
            f'{number(clip["first_motion"], 1)}{number(clip["brightness"], 0)}{number(clip["rate"], 0)}'
            '<td class="pictures" '
            f'data-value="{len(clip["pictures"])}">{"".join(picture(*each) for each in clip["pictures"])}</td>'
            f'{links(clip) if with_cuts else ""}<td>{html.escape(remark(clip))}</td></tr>')


def reports(folder, rows):
    """The reports of clips, by the names of the clips. motion-report names folders after clips, so the names must
    differ."""
    counts = collections.Counter(os.path.basename(clip["clip"]) for clip in rows)
    files = {name: os.path.join(REPORTS, name, "report.html") for name, count in counts.items() if name and count == 1}
    return {name: file for name, file in files.items() if os.path.isfile(os.path.join(folder, file))}


def write(path, rows, facts):
    """Writes the page. `rows` are the rows of clips.parquet, `facts` are sentences."""
    found, with_cuts = reports(os.path.dirname(path), rows), any(clip["cuts"] for clip in rows)
    heads = [*HEADS[:-1], CUTS, HEADS[-1]] if with_cuts else HEADS
    title = f"{len(rows)} clip{'s' if len(rows) != 1 else ''}"
    with common.whole(path) as stream:
        stream.write(PAGE.substitute(
            title=title, facts="<br>".join(map(html.escape, facts)),
            heads="".join(f"<th><button>{head}</button></th>" for head in heads),
            rows="\n".join(row(clip, found.get(os.path.basename(clip["clip"])), with_cuts)
                           for clip in rows)).encode("utf-8", "backslashreplace"))
