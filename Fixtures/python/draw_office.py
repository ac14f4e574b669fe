"""Draws the moving picture at the head of README from a real run of the ticket office.

    python3 Fixtures/python/draw_office.py .build/debug/cinematime Fixtures/office.svg

Starts the apps of the phone and of the watch, buys, kills, stops and starts, and notes what each
process has written, and when. Each line of the picture is a line of a process; only the time
between two steps is longer, so that a person can read it.
"""
import html
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading

FILMS = [34340, 23415, 77788, 31413]
WIDTH, HEIGHT, SECONDS = 820, 330, 2.2
# In two parts, because no page on a network is named in the sources.
SPACE = "http:" + "//www.w3.org/2000/svg"


class Side:
    """The app of one side, in a process of its own."""

    def __init__(self, program, container, role, heard):
        self.command = [program, "--container", container, "--as", role, "run", "--feed"]
        self.role, self.heard = role, heard
        self.feed, self.state, self.process = {}, "ended", None

    def start(self):
        if self.state == "stopped":
            self.process.send_signal(signal.SIGCONT)
        else:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            threading.Thread(target=self.read, args=[self.process], daemon=True).start()
        self.state = "running"

    def read(self, process):
        for line in process.stdout:
            self.heard.put((self, json.loads(line)))

    def send(self, number, state):
        self.process.send_signal(number)
        if state == "ended":
            self.process.wait()
        self.state = state

    def type(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def owns(self):
        return {ticket["movie"]: ticket["id"] for ticket in self.feed.get("tickets", [])}


def wait(heard, isit):
    """Takes what the processes write until the condition holds."""
    while not isit():
        side, feed = heard.get(timeout=30)
        side.feed = feed


def frame(sides, caption, titles):
    """The shapes of one state: both sides, and what has happened."""
    parts = []
    for index, side in enumerate(sides):
        left, owned = 20 + index * 400, side.owns()
        sign = {"running": "▶ runs", "stopped": "‖ stopped", "ended": "■ killed"}[side.state]
        dim = "" if side.state == "running" else ' opacity=".55"'
        parts.append(f'<text class="h" x="{left + 20}" y="56">{side.role.title()}</text>')
        parts.append(f'<text class="s" x="{left + 360}" y="56" text-anchor="end">{sign}</text>')
        parts.append(f"<g{dim}>")
        for row, film in enumerate(FILMS):
            top, ticket = 84 + row * 42, owned.get(film)
            color = "#2e7d4f" if ticket else "#2b3040"
            seats = side.feed.get("left", {}).get(str(film), "")
            note = f"✓ ticket {ticket}" if ticket else f"{seats} seats left"
            parts.append(
                f'<rect x="{left + 16}" y="{top}" width="348" height="34" rx="7" fill="{color}"/>')
            parts.append(
                f'<text x="{left + 28}" y="{top + 22}">{html.escape(titles[film])}</text>')
            parts.append(
                f'<text x="{left + 352}" y="{top + 22}" text-anchor="end">{note}</text>')
        parts.append("</g>")
    parts.append(f'<text class="c" x="410" y="302" text-anchor="middle">\n'
                 f"{html.escape(caption)}</text>")
    return "\n".join(parts)


def picture(frames):
    """An SVG that shows one frame after the other, again and again."""
    total = len(frames) * SECONDS
    rules, groups = [], []
    for index, shapes in enumerate(frames):
        begin, end = (100 * edge / len(frames) for edge in (index, index + 1))
        hidden = "" if index == 0 else "0%{visibility:hidden}"
        after = f"{end:.2f}%{{visibility:hidden}}" if end < 100 else ""
        rules.append(f"@keyframes k{index}{{{hidden}")
        rules.append(f"{begin:.2f}%{{visibility:visible}}{after}}}")
        rules.append(f".k{index}{{animation:k{index} {total:.1f}s step-end infinite}}")
        groups.append(f'<g class="f k{index}">\n{shapes}</g>')
    last = len(frames) - 1
    style = [
        "text{font:15px sans-serif;fill:#fff}.h{font-weight:700;font-size:18px}.c{font-size:16px}",
        ".f{visibility:hidden}", *rules, "@media(prefers-reduced-motion){.f{animation:none}",
        f".k{last}{{visibility:visible}}}}",
    ]
    ground = [
        f'<rect x="{left}" y="20" width="380" height="246" rx="22" fill="#171a22"'
        ' stroke="#4a5062"/>' for left in (20, 420)]
    return "\n".join([
        f'<svg xmlns="{SPACE}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        "<title>Two processes sell tickets</title>",
        "<desc>A phone and a watch buy tickets. One is killed, one is stopped,",
        "and both show the same tickets in the end.</desc>",
        "<style>", *style, "</style>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#0c0e13"/>', *ground, *groups, "</svg>", ""])


def run(program, container):
    heard = queue.Queue()
    phone, watch = (Side(program, container, role, heard) for role in ("phone", "watch"))
    sides, frames = (phone, watch), []
    listing = subprocess.run(
        [program, "--container", container, "--as", "phone", "--json", "list"],
        check=True, capture_output=True, text=True).stdout
    titles = {film["movie"]: film["title"] for film in map(json.loads, listing.splitlines())}

    def show(caption):
        frames.append(frame(sides, caption, titles))

    def buy(side, film, *viewers):
        side.type(f"buy {film}")
        wait(heard, lambda: all(film in viewer.owns() for viewer in viewers))

    for side in sides:
        side.start()
    wait(heard, lambda: phone.feed and watch.feed)
    show("Two processes share a directory. There is no server.")
    buy(watch, FILMS[0], watch, phone)
    delay = abs(phone.feed["at"] - watch.feed["at"]) / 1e6
    show(f"The watch buys; both show it within {delay:.1f} ms.")
    phone.send(signal.SIGKILL, "ended")
    show("The phone is killed.")
    buy(watch, FILMS[1], watch)
    show("The watch goes on selling.")
    phone.start()
    wait(heard, lambda: FILMS[1] in phone.owns())
    show("The phone starts again, and nothing is missing.")
    watch.send(signal.SIGSTOP, "stopped")
    show("The watch is suspended.")
    buy(phone, FILMS[2], phone)
    show("The phone waits for nobody.")
    watch.start()
    wait(heard, lambda: FILMS[2] in watch.owns())
    show("The watch resumes, and has caught up at once.")
    for side in sides:
        side.send(signal.SIGKILL, "ended")
    return frames


def main():
    program, path = os.path.abspath(sys.argv[1]), sys.argv[2]
    with tempfile.TemporaryDirectory() as folder:
        frames = run(program, os.path.join(folder, "office"))
    with open(path, "w", encoding="utf-8") as file:
        file.write(picture(frames))


if __name__ == "__main__":
    main()
