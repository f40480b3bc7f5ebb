def save(*_):
    pass


def load(*_):
    pass
