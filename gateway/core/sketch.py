"""How alike two mails read: a sketch of a mail's words, small enough to be kept with every send, and how to compare two.

A mail's features are its words and its pairs of neighbouring words, from subject, body and names of files. The sketch
holds the lowest of their hashes, which are a fair sample of all features (a bottom-k sketch), so that of short mails it
holds every one. Likeness is the share of common features in all features of both (Jaccard), exact for short mails.

Not looked at: case, punctuation, how a letter is encoded, marks that nobody sees, quoted lines and what follows a
signature's dashes, how a mail greets, hidden parts of HTML, what follows the question mark in a link. Numbers are no
features and count more than words: mails whose numbers differ tell different things (another date, amount, order),
however alike they read.
"""

import html as markup
import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from string import ascii_lowercase, digits
from unicodedata import normalize
from zlib import crc32

LOOK = 4096
"""Characters of the body that are looked at."""
LOOK_HTML = 4 * LOOK
WORDS = 256
"""Words that are looked at: a full page. Numbers count wherever they stand within LOOK."""
KEPT = 64
"""Hashes that are kept at most: the likeness of long mails is right to about six in a hundred."""
SHORT = 15
"""Features of about eight words; with fewer a single word can turn the meaning round, so only the same ones are alike."""
TINY = 10
"""Features of about six words; who says less ("Thanks!") may well say it again, so it is like nothing."""
GREETINGS = frozenset({
    b"hi", b"hello", b"hey", b"dear", b"greetings", b"hallo", b"moin", b"servus", b"liebe", b"lieber", b"bonjour",
    b"salut", b"hola", b"ciao", b"hej",
})  # fmt: skip

# Scripts without blanks between words (Thai, Lao, Burmese, Khmer, kana, Han): each letter is taken for a word.
_DENSE = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
# Soft hyphens, joiners, marks of direction and of variants: within a word they change nothing that is seen.
_UNSEEN = re.compile("[\u00ad\u034f\u061c\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]")
_WORD = re.compile(rf"\d+|[{_DENSE}]|[^\W\d_{_DENSE}]+")
# ASCII is most of all mail: what is no letter, and what is no digit, becomes a blank.
_LETTERS = bytes(octet if chr(octet) in ascii_lowercase else 32 for octet in range(256))
_DIGITS = bytes(octet if chr(octet) in digits else 32 for octet in range(256))
_LINK = re.compile(r"(://[^\s?#]*)(?:[?#]\S*)?")
_QUOTED = re.compile(r"^>.*$", re.MULTILINE)
# An element without its end goes to the end of the text, so that no input is read twice.
_HIDDEN = re.compile(
    r"<!--[^-]*(?:-(?!->)[^-]*)*|<(style|script|blockquote|title)\b[^<]*(?:<(?!/\1)[^<]*)*", re.IGNORECASE
)
_TAG = re.compile(r"<[^<>]*>")


def sketch(subject: str, text: str | None, html: str | None, filenames: Iterable[str] = ()) -> bytes:
    """The sketch of a mail: four octets for its numbers, then up to KEPT hashes of four octets each, rising.

    The text counts, and HTML only where there is no text.
    """
    body = text[:LOOK] if text and not text.isspace() else _seen(html[:LOOK_HTML]) if html else ""
    parts = [_words(_own(body)), _words(subject[:LOOK]), *map(_words, filenames)]
    said = parts[0].words
    if said and said[0] in GREETINGS:
        del said[0]
    features: set[int] = set()
    for part in parts:
        hashes = list(map(crc32, part.words))
        features.update(hashes, map(crc32, part.words[1:], hashes))  # a pair's hash is that of both words in one
    kept = _lowest(features)
    numbers = b" ".join([number for part in parts for number in part.numbers])
    return struct.pack(f">{1 + len(kept)}I", crc32(numbers), *kept)


def _lowest(features: set[int]) -> list[int]:
    """The lowest KEPT of many hashes, rising; most of a long mail's are too high to be worth sorting."""
    bar = 2 * KEPT * (1 << 32) // max(1, len(features))
    below = [feature for feature in features if feature < bar]
    return sorted(below if len(below) >= KEPT else features)[:KEPT]


def likeness(one: bytes, other: bytes) -> int:
    """How alike two sketches are, in per cent: 0 where their numbers differ, and for what says next to nothing.

    Short ones are alike wholly or not at all.
    """
    if one[:4] != other[:4]:
        return 0
    first, second = set(_hashes(one)), set(_hashes(other))
    fewest = min(len(first), len(second))
    if fewest < TINY:
        return 0
    if fewest < SHORT:
        return 100 if first == second else 0
    common = first & second
    sample = sorted(first | second)[:KEPT]
    return 100 * sum(feature in common for feature in sample) // len(sample)


def _hashes(kept: bytes) -> tuple[int, ...]:
    return struct.unpack(f">{len(kept) // 4}I", kept)[1:]


def _own(body: str) -> str:
    """A body without what it quotes, its signature and the ends of its links."""
    if "://" in body:
        body = _LINK.sub(r"\1", body)
    if "\n-- \n" in body:
        body = body[: body.index("\n-- \n")]
    return _QUOTED.sub("", body) if ">" in body else body


@dataclass(slots=True)
class _Text:
    """The first WORDS words of a text in one case, and its numbers, each in their order."""

    words: list[bytes]
    numbers: list[bytes]


def _words(text: str) -> _Text:
    if text.isascii():
        octets = text.lower().encode()
        return _Text(octets.translate(_LETTERS).split(None, WORDS)[:WORDS], octets.translate(_DIGITS).split())
    read = _Text([], [])
    # The same letter may be written in two ways, and marks that nobody sees may stand within a word.
    for word in _WORD.findall(_UNSEEN.sub("", normalize("NFKC", text).casefold())):
        if word.isdecimal():
            read.numbers.append(_ascii_digits(word))
        else:
            read.words.append(word.encode("utf-8", "surrogatepass"))
    del read.words[WORDS:]
    return read


def _ascii_digits(number: str) -> bytes:
    """A number in the digits of whatever script as one in ours."""
    return number.encode() if number.isascii() else "".join(str(int(digit)) for digit in number).encode()


def _seen(html: str) -> str:
    """What a reader sees of HTML, up to LOOK characters."""
    return markup.unescape(_TAG.sub(" ", _HIDDEN.sub(" ", html)))[:LOOK]
