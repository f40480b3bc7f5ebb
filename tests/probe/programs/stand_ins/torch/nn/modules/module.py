import types


class Handle:
    def remove(self):
        pass


def register_module_forward_pre_hook(_):
    return Handle()


def register_module_forward_hook(_, always_call=False):
    return Handle()


class Parameter:
    shape, dtype, requires_grad = (), "torch.float32", True

    def __init__(self, number):
        self.ds_shape, self.ds_numel = (2, number), 2 * number
        self.ds_id, self.ds_status = number, types.SimpleNamespace(name="NOT_AVAILABLE")

    def element_size(self):
        return 4


class Module:
    training = True

    def __init__(self, parts, own):
        self.parts, self.own = parts, own

    def named_modules(self):
        yield "", self
        for name, part in self.parts:
            yield name, part

    def named_parameters(self):
        for number, parameter in enumerate(self.parameters()):
            yield "parameter.%d" % number, parameter

    def parameters(self):
        yield from self.own
        for _, part in self.parts:
            yield from part.parameters()
