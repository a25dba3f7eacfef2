"""Makes data/english.txt from the Debian package bible-kjv-text.

    apt-get install bible-kjv
    python data/make_text.py

The package's own reader, `bible`, prints the whole text, one verse a line, each behind its reference ("Ge1:1 In the
beginning ..."). This script keeps the books named below, drops the references, and puts a heading before each
chapter. The result is plain ASCII.
"""

import re
import subprocess
import sys
from pathlib import Path

# The reader's abbreviation of each book that is kept, and its heading. The order is the order in the file: a program
# that holds out the end of the text for validation gets John, after the two gospels before it.
BOOKS = {
    "Ge": "GENESIS",
    "Ruth": "RUTH",
    "1Sm": "1 SAMUEL",
    "2Sm": "2 SAMUEL",
    "Job": "JOB",
    "Psa": "PSALM",
    "Prv": "PROVERBS",
    "Eccl": "ECCLESIASTES",
    "Mat": "MATTHEW",
    "Mark": "MARK",
    "John": "JOHN",
}
VERSE = re.compile(r"(\d?[A-Za-z]+)(\d+):(\d+) (.+)")


def whole_text() -> str:
    """Every verse that the package holds, as its reader prints them."""
    try:
        done = subprocess.run(["bible", "-f", "Genesis1:1-Revelation22:21"], capture_output=True, check=True)
    except FileNotFoundError:
        sys.exit("make_text.py: the program `bible` is not here; `apt-get install bible-kjv` brings it and the text")
    return done.stdout.decode("ascii")


def chapters(lines: list[str]) -> dict[tuple[str, int], list[str]]:
    """The verses of the books that are kept, by book and chapter."""
    found: dict[tuple[str, int], list[str]] = {}
    for line in lines:
        match = VERSE.fullmatch(line)
        if match is None:
            sys.exit(f"make_text.py: not a verse: {line!r}")
        book, chapter, _, words = match.groups()
        if book in BOOKS:
            found.setdefault((book, int(chapter)), []).append(" ".join(words.split()))
    missing = BOOKS.keys() - {book for book, _ in found}
    if missing:
        sys.exit(f"make_text.py: the package has no book called {', '.join(sorted(missing))}")
    return found


def main() -> None:
    found = chapters(whole_text().splitlines())
    order = list(BOOKS)
    parts = [
        f"{BOOKS[book]} {chapter}\n\n" + "\n".join(verses) + "\n"
        for (book, chapter), verses in sorted(found.items(), key=lambda item: (order.index(item[0][0]), item[0][1]))
    ]
    target = Path(__file__).with_name("english.txt")
    target.write_bytes("\n".join(parts).encode("ascii"))
    print(f"{target}: {target.stat().st_size:,} bytes, {len(parts)} chapters")


if __name__ == "__main__":
    main()
