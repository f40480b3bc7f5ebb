class _BaseDataLoaderIter:
    def __init__(self, loader):
        pass

    def __next__(self):
        raise StopIteration
