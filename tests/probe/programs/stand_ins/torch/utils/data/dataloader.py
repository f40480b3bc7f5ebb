class _BaseDataLoaderIter:
    def __init__(self, loader):
        self.left = list(loader.dataset)

    def __next__(self):
        if not self.left:
            raise StopIteration
        return self.left.pop(0)


class DataLoader:
    def __init__(self, *batches):
        self.dataset, self.sampler, self.batch_size, self._dataset_kind = batches, None, 1, 0

    def __len__(self):
        return len(self.dataset)
