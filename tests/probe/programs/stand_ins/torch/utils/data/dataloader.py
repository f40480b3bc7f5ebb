class _BaseDataLoaderIter:
    def __init__(self, loader):
        self.left = list(loader.dataset)

    def __next__(self):
        if not self.left:
            raise StopIteration
        return self.left.pop(0)


class DataLoader:
    sampler, batch_size = None, 1

    def __init__(self, *batches):
        self.dataset = batches

    def __len__(self):
        return len(self.dataset)
