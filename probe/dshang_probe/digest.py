"""Short hashes that are equal in every process, and what little arithmetic the probe needs.

What they need is imported when the first one is made: torch has imported it by then."""


def hasher():
    import hashlib
    return hashlib.blake2b(digest_size=8)


def short_hash(text):
    made = hasher()
    made.update(text.encode("utf-8", "replace"))
    return made.hexdigest()


def is_finite(number):
    return number - number == 0


def median(numbers):
    ordered = sorted(numbers)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
