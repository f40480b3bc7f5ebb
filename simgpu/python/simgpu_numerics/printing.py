"""Tensors of a device are printed from a copy.

torch prints with every dispatch mode off. On the device it would then take the number of elements to show from a kernel
that did nothing: a count of whatever the memory held before, up to all memory of the machine.
"""


def print_from_cpu(torch):
    contents = torch._tensor_str._tensor_str
    plain = (torch.Tensor, torch.nn.Parameter)

    def contents_from_cpu(tensor, indent):
        return contents(tensor.detach().cpu() if type(tensor) in plain and tensor.is_cuda else tensor, indent)

    torch._tensor_str._tensor_str = contents_from_cpu
