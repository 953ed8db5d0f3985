"""What bench/run measured, as Markdown, and against the goals."""
import os, re, statistics
from pathlib import Path

# What canopyd is to reach: as a multiple of the floor unless a unit is said.
GOALS = {
    "kept": 1.3, "fresh": 1.5, "throughput": 0.75, "canopyctl": 1.5, "rss": 8.0, "anonymous": 0.8, "profile": 4.0,
    "first answer": 10.0, "first token": 50.0}


def ratios(rounds, name, figure, base="floor"):
    return statistics.median(one[name][figure] / one[base][figure] for one in rounds)


def median(rounds, name, figure):
    return statistics.median(one[name][figure] for one in rounds)


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "| --- |" + " ---: |" * (len(header) - 1)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def report(bench, measured):
    servers, rounds, commands, after, idle, starts, counted, memories = measured
    options = bench.options
    names = [server.name for server in servers]
    model = re.search(r"^model name\s*: (.*)", Path("/proc/cpuinfo").read_text(), re.M)
    lines = [
        f"{options.rounds} rounds of {options.seconds} s for each server, in blocks of 50 ms in turn; "
        f"{os.cpu_count()} cores{f' ({model[1]})' if model else ''}, Linux {os.uname().release}; load average "
        f"{min(bench.loads):.1f} to {max(bench.loads):.1f} meanwhile. Ratios are within a round, and medians of the "
        f"rounds. Reply: {bench.reply_bytes} bytes of JSON with a token of {bench.token_bytes}.", ""]

    def row(title, key, figure, text, base=True):
        one = rounds[key]
        cells = [text.format(median(one, "floor", figure))]
        for name in names[1:]:
            cells.append(f"{ratios(one, name, figure):.2f}" if name in one[0] else "–")
        return [title, *cells]

    rows = []
    for kind in ["kept", "fresh"]:
        for clients in [1, 8, 64]:
            key, who = (kind, clients), f"{kind}, {clients} client{'s' if clients > 1 else ''}"
            rows.append(row(f"{who}: p50", key, "p50", "{:.1f} µs"))
            rows.append(row(f"{who}: p99", key, "p99", "{:.1f} µs"))
            rows.append(row(f"{who}: requests per second", key, "rate", "{:.0f}"))
            rows.append(row(f"{who}: server's processor time", key, "processor", "{:.1f} µs"))
    lines += table(["", "floor", *(f"{name} / floor" for name in names[1:])], rows) + [""]

    rows = []
    for title, index, text in [("RSS, MB", 0, "{:.1f}"), ("Anonymous, MB", 1, "{:.2f}"), ("threads", 2, "{}")]:
        rows.append([title, *(text.format(after[name][index]) for name in names)])
    for title, index, text in [("instructions per kept request", 0, "{:.0f}"), ("system calls per kept request", 1, "{:.1f}")]:
        rows.append([title, *(text.format(counted[name][index]) if name in counted else "–" for name in names)])
    lines += table(["after all that", *names], rows) + [""]

    kept, fresh = rounds["kept", 1], rounds["fresh", 1]
    plain, static, ours, kube, git = (statistics.median(column) for column in zip(*commands))
    to_plain, to_static, kube_to_plain, git_to_plain = (
        statistics.median(one[which] / one[base] for one in commands) for which, base in [(2, 0), (2, 1), (3, 0), (4, 0)])
    each = (memories[101][1] - memories[11][1]) * 1024 / 90 - bench.token_bytes / 1024
    found = [
        ("kept connection, p50 / floor", "kept", ratios(kept, "canopyd", "p50"), "{:.2f}", ""),
        ("kept connection, p50 / C on sd-event", "kept", ratios(kept, "canopyd", "p50", "sd-event"), "{:.2f}", ""),
        ("fresh connection, p50 / floor", "fresh", ratios(fresh, "canopyd", "p50"), "{:.2f}", ""),
        ("8 clients, requests per second / floor", "throughput",
         ratios(rounds["kept", 8], "canopyd", "rate"), "{:.2f}", ""),
        (f"`canopyctl token` ({ours:.2f} ms) / C client ({plain:.2f} ms)", "canopyctl", to_plain, "{:.2f}", ""),
        (f"`canopyctl token` / the same C client, linked statically ({static:.2f} ms)", "canopyctl", to_static, "{:.2f}", ""),
        (f"`canopyctl kube-credential` ({kube:.2f} ms) / C client", "canopyctl", kube_to_plain, "{:.2f}", ""),
        (f"`canopyctl git-credential` ({git:.2f} ms) / C client", "canopyctl", git_to_plain, "{:.2f}", ""),
        ("RSS with 1 profile", "rss", memories[1][0], "{:.1f}", " MB"),
        ("Anonymous with 1 profile", "anonymous", memories[1][1], "{:.2f}", " MB"),
        (f"Anonymous per further profile beyond its token (11 profiles {memories[11][1]:.2f} MB, 101 "
         f"{memories[101][1]:.2f} MB)", "profile", each, "{:.1f}", " KB"),
        ("threads", None, memories[101][2], "{}", ""),
        (f"context switches in {options.idle} s of idleness", None, idle, "{}", ""),
        (f"exec to first answer, median (least {starts['first answer'][1]:.1f} ms; floor {starts['floor'][0]:.1f}, "
         f"C on sd-event {starts['sd-event'][0]:.1f} ms)", "first answer", starts["first answer"][0], "{:.1f}", " ms"),
        (f"exec to first token out of the keyring, median (least {starts['first token'][1]:.1f} ms; `secret-tool search` "
         f"{starts['keyring']:.1f} ms)", "first token",
         starts["first token"][0], "{:.1f}", " ms")]
    rows, missed = [], 0
    for title, goal, value, text, unit in found:
        if goal is None:
            bound, is_good = ("1", value == 1) if title == "threads" else ("0", value == 0)
        elif goal == "throughput":
            bound, is_good = f"≥ {GOALS[goal]:g}", value >= GOALS[goal]
        else:
            bound, is_good = f"≤ {GOALS[goal]:g}{unit}", value <= GOALS[goal]
        missed += not is_good
        rows.append([title, text.format(value) + unit, bound, "yes" if is_good else "**no**"])
    lines += table(["goal", "measured", "asked", "reached"], rows)
    return "\n".join(lines) + "\n", missed


def write(text, path):
    """Between two marks, if the file has them; what is around them was written by hand."""
    start, end = "<!-- measured -->\n", "<!-- end -->\n"
    whole = path.read_text() if path.exists() else ""
    if start in whole and end in whole:
        text = whole[:whole.index(start)] + start + text + whole[whole.index(end):]
    path.write_text(text)
