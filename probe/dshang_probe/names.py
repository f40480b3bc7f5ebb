"""Names as numbers: every text is handed to the native side once, every module is named once."""
import weakref

# Wrappers of a whole model, with what they hold; and the path components that wrappers of parts add.
_HOLDERS = {"DistributedDataParallel": "module", "DataParallel": "module", "FullyShardedDataParallel": "module",
            "OptimizedModule": "_orig_mod"}
_ADDED = {"_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"}
_MOST_TEXTS = 20000
_MOST_GATHERS = 4096


class ModuleName:
    """What is known of one module: `id` 0 = its visits are not recorded; `root` = a model, not a part of one."""

    __slots__ = ("reference", "id", "root")

    def __init__(self, reference, number, root):
        self.reference, self.id, self.root = reference, number, root


class Names:
    def __init__(self, native):
        self.native = native
        self.ids = {}                 # text: number
        self.modules = {}             # id(module): ModuleName
        self.gathers = {}             # (parameter ids, sorted): (hash, number of the text)
        self.models = 0
        self.rows = None              # of the largest embedding of the known models, 0 = they have none

    def intern(self, text):
        number = self.ids.get(text)
        if number is None:
            number = self.native.intern(text)
            if len(self.ids) < _MOST_TEXTS:
                self.ids[text] = number
        return number

    def of_module(self, module):
        """The ModuleName of a module, None while it is unknown."""
        known = self.modules.get(id(module))
        if known is not None and known.reference() is module:
            return known
        return None

    def add_model(self, model):
        """Names a model and all its parts.  A second model in the process has its class before its names."""
        root = without_wrappers(model)
        if next(iter(root.parameters()), None) is None:
            self.add_unrecorded(root)             # a loss function
            return
        known = self.of_module(model) or self.of_module(root)
        if known is None:
            self.models += 1
        self.rows = max([self.rows or 0] + [_rows(module) for _, module in root.named_modules()])
        prefix = type(root).__name__ + "." if self.models > 1 and known is None else ""
        for name, module in root.named_modules():
            name = ".".join(part for part in name.split(".") if part not in _ADDED)
            text = prefix + name if name else type(root).__name__
            # Without parameters there is nothing to gather or to reduce.
            empty = next(iter(module.parameters()), None) is None
            self._add(module, None if empty else text, module is root)
        if model is not root:
            self._add(model, None, True)

    def add_unrecorded(self, module):
        """A module that is known but whose visits say nothing."""
        self._add(module, None, False)

    def _add(self, module, text, root):
        key = id(module)
        try:
            def forget(reference, modules=self.modules):
                if modules.get(key) is not None and modules[key].reference is reference:
                    del modules[key]
            reference = weakref.ref(module, forget)
        except TypeError:
            return
        self.modules[key] = ModuleName(reference, self.intern(text) if text else 0, root)

    def add_gather(self, numbers, names):
        """(hash, number of a readable text) of sorted parameter ids; equal ids have equal hashes in every process."""
        known = (hash(numbers) & 0xffffffffffffffff or 1, self.intern(_gather_text(numbers, names)))
        if len(self.gathers) < _MOST_GATHERS:
            self.gathers[numbers] = known
        return known


def without_wrappers(model):
    while type(model).__name__ in _HOLDERS:
        model = getattr(model, _HOLDERS[type(model).__name__])
    return model


def _rows(module):
    rows = module.__dict__.get("num_embeddings") if hasattr(module, "__dict__") else None
    return rows if isinstance(rows, int) else 0


def _gather_text(numbers, names):
    """(12, 13, 14, 20) -> "ids 12-14 20 (blocks.1.fc.weight ... blocks.2.fc.bias)"."""
    ranges = []
    for number in numbers:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    shown = ["%d" % a if a == b else "%d-%d" % (a, b) for a, b in ranges[:12]]
    text = "ids " + " ".join(shown) + (" ..." if len(ranges) > 12 else "")
    first, last = names.get(numbers[0]), names.get(numbers[-1])
    if first:
        text += " (%s)" % first if first == last or not last else " (%s ... %s)" % (first, last)
    return text[:400]
