def backward(*_):
    pass
