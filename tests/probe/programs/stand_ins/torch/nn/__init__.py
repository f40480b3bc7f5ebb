from torch.nn.modules.module import Parameter  # noqa: F401
