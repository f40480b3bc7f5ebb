"""Short hashes that are equal in every process.

What they need is imported when the first one is made: torch has imported it by then."""


def hasher():
    import hashlib
    return hashlib.blake2b(digest_size=8)


def short_hash(text):
    made = hasher()
    made.update(text.encode("utf-8", "replace"))
    return made.hexdigest()
