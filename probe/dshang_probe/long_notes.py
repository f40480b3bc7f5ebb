"""Texts that may be longer than a string of the flight memory; core/job/long_text.h puts them together again."""

_LONGEST = 3500           # bytes of a piece
_MOST = 8                 # pieces


def note_long(native, key, text):
    """Under `key` stands the text itself, or "pieces <n>" and the text under `key`/1 to `key`/<n>, or "cut " and its beginning."""
    data = text.encode("utf-8", "replace")
    if len(data) <= _LONGEST:
        return native.note(key, text)
    # What was noted under this key before may not be read with pieces of this one.
    native.note(key, "cut " + _whole_letters(data[:_LONGEST - 4]))
    if len(data) > _LONGEST * _MOST:
        return
    count = 0
    while data:
        piece = _whole_letters(data[:_LONGEST])
        count += 1
        native.note("%s/%d" % (key, count), piece)
        data = data[len(piece.encode("utf-8")):]
    native.note(key, "pieces %d" % count)


def _whole_letters(data):
    """The text without the letter that the end of `data` divides."""
    return data.decode("utf-8", "ignore")
