from dshang_probe import seen_from_inside


def wrapped(function):
    def wrapper():
        seen_from_inside()
        return function()
    return wrapper
