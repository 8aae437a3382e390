"""How alike two mails read: what counts as the same, what as something else, and what it costs."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.sketch import KEPT, LOOK, WORDS, likeness, sketch

LETTER = """Hi Pat,

I hope that all is well. I wanted to come back to the talk that we had about the renewal of your contract. We have made
a new offer, which holds the discount that you asked for, and we would be glad to walk you through it. Would Thursday
afternoon suit you for a short call? If not, just tell me which time is better for you.

You can see the offer at https://www.example.com/offers/spring and answer this mail with any question.

Kind regards from the desk
"""


def alike(one: str, other: str, subject: str = "") -> int:
    """How alike two texts under one subject are."""
    return likeness(sketch(subject, one, None), sketch(subject, other, None))


SIX = "see you at the old station "
"""Words enough for a mail to be compared, and few enough that each counts."""


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Many thanks for your quick answer!", "many thanks for your quick answer!!"),
        ("Hello Pat, the contract is ready now.", "Hi Pat: the contract is ready now!"),
        ("one two\nthree, four five six", "One, two... three? Four; five (six)"),
        (SIX + "https://example.com/a?token=x1", SIX + "https://example.com/a?token=y2"),
        (SIX, SIX + "\n\n> do you agree, and by when can you sign?\n> and if not, why?"),
        (SIX, SIX + "\n-- \nThe desk, Street 5, Town"),
        (SIX + "\u0661\u0662", SIX + "12"),  # digits are digits
        ("\u4f60\u597d\uff0c\u6211\u5011\u660e\u5929\u898b", "\u4f60\u597d\u3002\u6211\u5011\u660e\u5929\u898b"),
        (SIX + "\ud800", SIX + "\ud800"),
        (SIX + "Gr\u00fc\u00dfe", SIX + "Gru\u0308\u00dfe"),  # one letter, or a letter and its dots
        (SIX, "\ufeff" + SIX.replace("old", "o\u00adld").replace("station", "sta\u200btion")),
        (SIX, SIX.replace("see", "\uff33\uff25\uff25")),
    ],
)
def test_texts_that_say_the_same_are_wholly_alike(one: str, other: str) -> None:
    assert alike(one, other) == 100


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Yes, we can do that for you", "No, we can do that for you"),
        (SIX, SIX + "once more"),
        (SIX + "17", SIX + "18"),
        (LETTER + "Your number is 17.", LETTER + "Your number is 18."),
        (SIX + "\u0661\u0662", SIX + "13"),
        (SIX + "https://example.com/1", SIX + "https://example.com/2"),
    ],
)
def test_short_texts_with_another_word_and_texts_with_another_number_are_not_alike(one: str, other: str) -> None:
    assert alike(one, other) == 0


@pytest.mark.parametrize("text", ["", "Thanks!", "\U0001f44d", "OK, see you then"])
def test_who_says_next_to_nothing_may_say_it_again(text: str) -> None:
    assert alike(text, text) == 0


def test_a_long_letter_with_a_word_changed_is_nearly_the_same() -> None:
    assert alike(LETTER, LETTER.replace("Thursday", "Friday")) > 90
    assert alike(LETTER, "Dear colleague,\n" + LETTER) > 90


def test_a_letter_said_anew_is_not_alike() -> None:
    anew = (
        "Hello Pat, may I ask whether you could read our offer? It still stands until the end of the month. "
        "If you would like to talk it over, write when it suits you, and we shall ring you up."
    )

    assert alike(LETTER, anew) < 30


def test_names_that_have_changed_places_are_seen() -> None:
    one = "Please tell Robin that Alex has agreed to it today"

    assert alike(one, "Please tell Alex that Robin has agreed to it today") < 75


def test_subject_and_names_of_files_count() -> None:
    assert likeness(sketch("offer", SIX, None), sketch("refusal", SIX, None)) == 0
    assert likeness(sketch("", SIX, None, ["a.pdf"]), sketch("", SIX, None, ["b.pdf"])) == 0
    assert likeness(sketch("", SIX, None, ["a.pdf"]), sketch("", SIX, None, ["a.pdf"])) == 100


def test_html_reads_like_the_text_that_it_shows() -> None:
    page = (
        "<html><head><title>mail</title><style>p { color: red }</style></head><!-- <p>hidden</p> -->"
        "<body><p>One &amp; two</p><p>three four <b>five</b> six</p>"
        "<blockquote>what you wrote</blockquote><script>go()</script></body>"
    )

    assert likeness(sketch("", None, page), sketch("", "one two three four five six", None)) == 100
    assert likeness(sketch("", " \n", page), sketch("", "one two three four five six", None)) == 100
    assert likeness(sketch("", SIX, page), sketch("", SIX, None)) == 100


@pytest.mark.parametrize(
    "text",
    [
        "<" * 40_000,
        "<style" * 9_000,
        "<!--" * 9_000,
        "<!" + "-" * 40_000,
        "&#" * 20_000,
        "://" * 20_000,
        "> \n" * 9_000,
        "\u0316\u0301" * 10_000,
        "\ufdfa" * 20_000,
    ],
)
def test_no_input_takes_long(text: str) -> None:
    begin = time.perf_counter()

    sketch(text, text, None)
    sketch(text, None, text)

    assert time.perf_counter() - begin < 0.5


def test_a_sketch_is_small_however_long_the_mail() -> None:
    words = " ".join(f"word{chr(97 + n % 26)}{chr(97 + n // 26 % 26)}{chr(97 + n // 676)}" for n in range(5_000))

    assert len(sketch("", words, None)) == 4 * (1 + KEPT)
    assert alike(words, words[:LOOK] + " and something else") == 100


def test_after_a_full_page_only_numbers_count() -> None:
    page = " ".join(f"word{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(WORDS))

    assert alike(page, page + " and what nobody reads") == 100
    assert alike(page + " due on the 7th", page + " due on the 8th") == 0


@given(st.text(), st.text(), st.text(), st.text())
def test_likeness_is_mutual_and_whole_or_nothing_for_oneself(subject: str, text: str, other: str, page: str) -> None:
    one, two = sketch(subject, text, page), sketch(subject, other, page)

    assert likeness(one, one) in (0, 100)
    assert likeness(one, two) == likeness(two, one)
    assert 0 <= likeness(one, two) <= 100
