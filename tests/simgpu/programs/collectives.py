"""Every kind of collective of torch.distributed, with values that are checked on each rank."""
import os

import torch
import torch.distributed as dist

from whole_line import say

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")


def on_device(values, dtype=torch.float32):
    return torch.tensor(values, dtype=dtype, device="cuda")


def check(what, got, wanted):
    assert got == wanted, f"{what} on rank {rank}: {got}, expected {wanted}"


x = on_device([rank + 1.0, 2.0])
dist.all_reduce(x)
check("all_reduce", x.cpu().tolist(), [world * (world + 1) / 2, 2.0 * world])
x = on_device([2 ** 53 + 1 + rank], torch.int64)
dist.all_reduce(x)
check("all_reduce of int64", x.cpu().tolist(), [world * (2 ** 53 + 1) + world * (world - 1) // 2])
for op, wanted in ((dist.ReduceOp.MAX, world), (dist.ReduceOp.MIN, 1), (dist.ReduceOp.AVG, (world + 1) / 2)):
    x = on_device([rank + 1.0])
    dist.all_reduce(x, op=op)
    check(f"all_reduce {op}", x.cpu().item(), float(wanted))
x = on_device([3.0])
dist.all_reduce(x, op=dist._make_nccl_premul_sum(0.5))
check("all_reduce of products", x.cpu().item(), 1.5 * world)

out = torch.empty(world, device="cuda", dtype=torch.bfloat16)
dist.all_gather_into_tensor(out, on_device([rank], torch.bfloat16))
check("all_gather", out.cpu().tolist(), [float(i) for i in range(world)])
out = torch.empty(1, device="cuda")
dist.reduce_scatter_tensor(out, on_device([float(i) for i in range(world)]))
check("reduce_scatter", out.cpu().tolist(), [float(rank * world)])
x = on_device([7.0 if rank == 0 else 0.0])
dist.broadcast(x, 0)
check("broadcast", x.cpu().item(), 7.0)
x = on_device([1.0])
dist.reduce(x, 0)
check("reduce", x.cpu().item() if rank == 0 else world, float(world))
out = torch.empty(world, device="cuda")
dist.all_to_all_single(out, on_device([rank * 10.0 + i for i in range(world)]))
check("all_to_all", out.cpu().tolist(), [i * 10.0 + rank for i in range(world)])
parts = [torch.empty(1, device="cuda") for _ in range(world)] if rank == 0 else None
dist.gather(on_device([float(rank)]), parts, 0)
if rank == 0:
    check("gather", [p.cpu().item() for p in parts], [float(i) for i in range(world)])

# Their sizes travel as integers on the device: a simulated GPU that gets those wrong hangs here.
objects = [{"a": list(range(1000))}] if rank == 0 else [None]
dist.broadcast_object_list(objects, 0)
check("broadcast_object_list", objects, [{"a": list(range(1000))}])
objects = [None] * world
dist.all_gather_object(objects, {"rank": rank, "text": "x" * (10 ** rank)})
check("all_gather_object", [o["rank"] for o in objects], list(range(world)))

dist.barrier()
for count in (1, 1000, 3000001):
    outgoing, incoming = torch.arange(count, dtype=torch.float32).add(rank).cuda(), torch.zeros(count, device="cuda")
    works = dist.batch_isend_irecv([dist.P2POp(dist.isend, outgoing, (rank + 1) % world),
                                    dist.P2POp(dist.irecv, incoming, (rank - 1) % world)])
    for work in works:
        work.wait()
    wanted = torch.arange(count, dtype=torch.float32) + (rank - 1) % world
    check(f"ring of {count}", bool((incoming.cpu() == wanted).all()), True)

# Two communicators, used in another order on the other rank, on streams of their own. Made in the same order before:
# making them is collective.
groups = dist.new_group(range(world)), dist.new_group(range(world))
for group in groups:
    dist.all_reduce(on_device([1.0]), group=group)
values = on_device([1.0]), on_device([2.0])
order = (0, 1) if rank == 0 else (1, 0)
works = [dist.all_reduce(values[i], group=groups[i], async_op=True) for i in order]
for work in works:
    work.wait()
check("crossed communicators", [v.cpu().item() for v in values], [float(world), 2.0 * world])
dist.destroy_process_group()
say("values right")
