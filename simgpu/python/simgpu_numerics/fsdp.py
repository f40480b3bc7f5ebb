"""FSDP2's own operators: their bodies are Python, and copy by operators that `small` mode can evaluate."""


def body_of(operator):
    """The function behind an operator of the namespace fsdp, None if there is none."""
    if operator.namespace != "fsdp":
        return None
    try:
        from torch.distributed.fsdp._fully_shard import _fsdp_collectives as collectives
    except ImportError:
        return None
    special = {"all_gather_copy_in": "all_gather_copy_in_cuda"}
    return getattr(collectives, special.get(operator.name, operator.name), None)
