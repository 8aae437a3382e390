"""Header fields: what may stand in one, how a value is written on the wire and how it is read back.

Values are encoded so that decoding gives exactly what was given (RFC 2047), and folded so that unfolding does (RFC 5322
2.2.3). It does not know which header a message needs: that is the writer's and the policies' business.
"""

import binascii
import re
from collections.abc import Iterator, Sequence

BLOCK_MAX = 102_400  # octets of one header block, as in Postfix
FIELDS_MAX = 1000  # header fields of one block
LINE_MAX = 998  # octets of a line without its CRLF (RFC 5322 2.1.1)
LINE_FAIR = 78  # octets a line should have at most (same)
WORD_FAIR = 64  # characters of one encoded word: at most 75 by RFC 2047 2, and a name goes before the first
NAME_MAX = 76  # characters of a header's name

PROTECTED = frozenset({
    "apparently-to", "authentication-results", "bcc", "cc", "date", "delivered-to", "dkim-signature",
    "domainkey-signature", "envelope-to", "from", "in-reply-to", "message-id", "mime-version", "received",
    "received-spf", "references", "reply-to", "return-path", "sender", "subject", "to", "x-fencing-token",
    "x-original-to",
})  # fmt: skip
PROTECTED_PREFIXES = ("arc-", "content-", "mime-", "resent-", "x-gateway-")

# C0, DEL, C1 (NEL among them), LS, PS and lone surrogates: each has ended a header early in some library.
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_ENCODED_WORD = re.compile(r"=\?([^?]*)\?([qQbB])\?(.{0,1000}?)\?=")  # bounded: else quadratic
_LIKE_A_WORD = re.compile(r"=\?[^?]*\?[qQbB]\?")
_PLAIN = re.compile(r"[!-~]+(?: +[!-~]+)*")
_CHUNK = re.compile(r" *[!-~]+")
_ATOMS = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?: [A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*")
_Q_SAFE = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!*+-/")
_FIELD = re.compile(rb"([!-9;-~]+)[ \t]*:")
_FOLD = re.compile(r"\r\n(?=[ \t])")
# The character sets of mail. Other codecs of Python are slow (idna) or can make lone surrogates (utf-7), and each name
# that is looked up in vain stays in a cache for good.
_CHARSETS = re.compile(
    r"utf-?(8|16|16[bl]e|32|32[bl]e)|latin-?1|iso[-_]?8859[-_]\d{1,2}|windows-\d{3,4}|cp-?\d{3,4}|koi8-[rut]"
    r"|gb2312|gbk|gb18030|big5(-hkscs)?|shift[-_]jis|sjis|euc-(jp|kr)|iso-2022-(jp|kr)|ks_c_5601-1987|tis-620|macintosh",
    re.IGNORECASE,
)


class MimeError(ValueError):
    """What was asked cannot be a mail; `field` says where, `why` is one dull sentence without any of the content."""

    def __init__(self, field: str, why: str) -> None:
        """Keep both for the answer."""
        super().__init__(f"{field}: {why}")
        self.field = field
        self.why = why


def protected(name: str) -> bool:
    """Whether a caller may not set this header by its name, in whatever case."""
    name = name.strip().lower()
    return name in PROTECTED or name.startswith(PROTECTED_PREFIXES)


def counted(name: str) -> bool:
    """Whether the fingerprint counts this header: the caller's own do, but for what says only how the mail came about."""
    return not protected(name) and name.lower() != "auto-submitted"


def has_controls(value: str) -> bool:
    """Whether a value holds a control character, a line or paragraph separator or a lone surrogate, raw or decoded."""
    if _CONTROLS.search(value):
        return True
    return "=?" in value and _CONTROLS.search(decode(value)) is not None


def check_header(name: str, value: str) -> None:
    """Refuses what must not become a header field.

    Raises `MimeError` for a name that is no token (RFC 9110 5.6.2, stricter than RFC 5322) or too long, and for control
    characters in the value or in what its encoded words hold (CVE-2024-6923). TAB is refused too: folding is ours.
    """
    if len(name) > NAME_MAX or _NAME.fullmatch(name) is None:
        raise MimeError("headers", "the name of a header is not a token of at most 76 ASCII characters")
    if has_controls(value):
        raise MimeError(name, "control characters are not allowed")


# --- reading ----------------------------------------------------------------------------------------------------------


def to_text(data: bytes, charset: str = "utf-8") -> str:
    """Text of octets in a named charset; unknown charsets are read as UTF-8 and wrong octets become U+FFFD."""
    if charset != "utf-8" and _CHARSETS.fullmatch(charset):
        try:
            return data.decode(charset, "replace")
        except (LookupError, ValueError):
            pass  # a number that no charset has
    return data.decode("utf-8", "replace")


def decode(value: str) -> str:
    """Decodes the encoded words of an unfolded value (RFC 2047); what is not well formed stays as it is."""
    if "=?" not in value:
        return value
    out: list[str] = []
    held, held_charset = b"", "utf-8"  # words in one charset are joined first: some writers split a character
    end, after_word = 0, False
    for match in _ENCODED_WORD.finditer(value):
        data = _word(match[2], match[3])
        if data is None:
            continue
        charset = match[1].partition("*")[0].lower()  # RFC 2231 5: a language may follow
        gap = value[end : match.start()]
        joined = after_word and not gap.strip(" \t")
        if not joined or charset != held_charset:
            out.append(to_text(held, held_charset))
            held = b""
        if not joined:
            out.append(gap)
        held, held_charset = held + data, charset
        end, after_word = match.end(), True
    out.extend((to_text(held, held_charset), value[end:]))
    return "".join(out)


def _word(encoding: str, text: str) -> bytes | None:
    """The octets of one encoded word, `None` where it is not well formed."""
    try:
        data = text.encode("ascii")
        if encoding in "bB":
            return binascii.a2b_base64(data + b"=" * (-len(data) % 4))
        return binascii.a2b_qp(data, header=True)
    except ValueError:
        return None


def split_fields(block: bytes, *, strict: bool = True) -> list[tuple[str, bytes]]:
    """Splits a header block (CRLF only, without its empty line) into pairs of name as written and whole raw field.

    A raw field has its folded lines and its final CRLF. Raises `MimeError` beyond the limits and, if
    `strict`, for a line that is neither field nor continuation: it ends the block for one reader and not for the next.
    """
    if len(block) > BLOCK_MAX:
        raise MimeError("headers", f"the header block is longer than {BLOCK_MAX} octets")
    fields: list[tuple[str, list[bytes]]] = []
    for line in block.split(b"\r\n"):
        if not line:
            continue
        match = _FIELD.match(line)
        if match is not None:
            fields.append((match[1].decode("ascii"), [line]))
        elif line[:1] in b" \t" and fields:
            fields[-1][1].append(line)
        elif strict:
            raise MimeError("headers", "a line of the header block is not a header field")
    if len(fields) > FIELDS_MAX:
        raise MimeError("headers", f"there are more than {FIELDS_MAX} header fields")
    return [(name, b"\r\n".join(lines) + b"\r\n") for name, lines in fields]


def value_of(field: bytes) -> str:
    """The unfolded value of a raw field, encoded words and all, without the blanks around it."""
    text = to_text(field[field.index(b":") + 1 : -2])
    return _FOLD.sub("", text).strip(" \t")


# --- writing ----------------------------------------------------------------------------------------------------------


def encode_words(value: str) -> list[str]:
    """A value as encoded words in UTF-8 (RFC 2047), each of whole characters and short enough for a fair line."""
    data = value.encode()
    quoted = sum(1 if byte in _Q_SAFE else 3 for byte in data.replace(b" ", b"_"))
    room = WORD_FAIR - len("=?utf-8?q??=")
    if quoted > (len(data) + 2) // 3 * 4:
        pieces = _pieces(value, room // 4 * 3)
        return [f"=?utf-8?b?{binascii.b2a_base64(piece, newline=False).decode()}?=" for piece in pieces]
    words = [""]
    for char in value:
        code = "_" if char == " " else "".join(
            chr(byte) if byte in _Q_SAFE else f"={byte:02X}" for byte in char.encode()
        )  # fmt: skip
        if len(words[-1]) + len(code) > room:
            words.append("")
        words[-1] += code
    return [f"=?utf-8?q?{word}?=" for word in words]


def _pieces(value: str, octets: int) -> Iterator[bytes]:
    """Cuts a value into UTF-8 pieces of at most so many octets, never inside a character."""
    piece = bytearray()
    for char in value:
        code = char.encode()
        if len(piece) + len(code) > octets:
            yield bytes(piece)
            piece.clear()
        piece += code
    yield bytes(piece)


def is_plain(value: str) -> bool:
    """Whether a value stands on the wire as it is: ASCII, no blanks around it, nothing like an encoded word."""
    return _PLAIN.fullmatch(value) is not None and not ("=?" in value and _LIKE_A_WORD.search(value))


def unstructured(value: str, *, split_long: bool) -> list[str]:
    """The pieces of a free text value, to be joined as they are or folded between each other.

    Plain ASCII stays plain; a piece then begins with the blanks before it. All else, text that could be read as an
    encoded word, and blanks at an end become encoded words. `split_long` also encodes words too long for a line of 78.
    """
    if is_plain(value):
        chunks = _CHUNK.findall(" " + value)
        if not split_long or max(map(len, chunks)) <= LINE_FAIR - len("Subject:"):
            return chunks
    return [" " + word for word in encode_words(value)] if value else []


def phrase(display: str) -> list[str]:
    """The pieces of a display name: atoms, a quoted string, or encoded words (RFC 5322 3.2.5, RFC 2047 5 (3))."""
    if len(display) > WORD_FAIR or not display.isascii() or _LIKE_A_WORD.search(display):
        return [" " + word for word in encode_words(display)]
    if _ATOMS.fullmatch(display):
        return [" " + display]
    escaped = display.replace("\\", "\\\\").replace('"', '\\"')
    return [f' "{escaped}"']


def fold(name: str, chunks: Sequence[str]) -> str:
    """One header field with its CRLF; a line breaks before a piece that would make it longer than 78 octets.

    Each piece begins with its blank, which becomes the blank of the folded line. Raises `MimeError` for a piece that no
    line can hold (998 octets), and for one that would end the field.
    """
    if _CONTROLS.search("".join(chunks)):
        raise MimeError(name, "control characters are not allowed")
    line = f"{name}:{''.join(chunks)}"
    if len(line) <= LINE_FAIR:
        return line + "\r\n"
    lines = [name + ":"]
    for chunk in chunks:
        if len(lines[-1]) + len(chunk) > LINE_FAIR and lines != [name + ":"]:
            lines.append("")
        lines[-1] += chunk
    if max(len(line.encode()) for line in lines) > LINE_MAX:
        raise MimeError(name, "a word is too long for one line")
    return "\r\n".join(lines) + "\r\n"
