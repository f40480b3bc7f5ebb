zero_init_context = 0


class Init:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


class GatheredParameters:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False
