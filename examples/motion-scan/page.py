# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writes the page that sums up a scan: one file, which needs no other file and no network."""
import html
import string

import common

PAGE = string.Template("""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>motion-scan: $title</title>
<style>
  body { font: 15px/1.4 system-ui, sans-serif; margin: 2em auto; max-width: 80em; padding: 0 1em; color: #222; background: #fff; }
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
  // A click on a head sorts by its column; a second click turns the order round.
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
HEADS = ("clip", "status", "duration, s", "frames", "motion", "objects", "first motion, s", "brightness", "frames/s", "remark")


def number(value, digits):
    """A cell with a number, or an empty one."""
    if value is None:
        return '<td data-value=""></td>'
    return f'<td data-value="{value:.6g}">{value:.{digits}f}</td>'


def row(clip):
    frames = clip["frames"] or 0
    share = clip["motion_frames"] / frames if frames else None
    motion = number(None, 0) if share is None else \
        f'<td class="share" style="--share: {100 * share:.0f}%" data-value="{share:.6g}">{100 * share:.0f} %</td>'
    return (f'<tr><td>{html.escape(clip["clip"])}</td><td class="{clip["status"]}">{clip["status"]}</td>'
            f'{number(clip["duration"], 1)}{number(clip["frames"], 0)}{motion}{number(clip["objects"] if frames else None, 0)}'
            f'{number(clip["first_motion"], 1)}{number(clip["brightness"], 0)}{number(clip["rate"], 0)}'
            f'<td>{html.escape(clip["error"] or "")}</td></tr>')


def write(path, rows, facts):
    """Writes the page. Rows are those of clips.parquet, facts are sentences."""
    title = f"{len(rows)} clip{'s' if len(rows) != 1 else ''}"
    with common.whole(path) as stream:
        stream.write(PAGE.substitute(
            title=title, facts="<br>".join(map(html.escape, facts)),
            heads="".join(f"<th><button>{head}</button></th>" for head in HEADS),
            rows="\n".join(map(row, rows))).encode("utf-8", "backslashreplace"))
