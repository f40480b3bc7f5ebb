"""The memory ledger beside a real allocator: torch with expandable segments, whose memory comes from cuMemCreate."""


def test_expandable_segments(bench):
    out, _ = bench.run("""
        import torch
        kept = torch.empty(300 << 20, dtype=torch.uint8, device="cuda")
        freed = torch.empty(100 << 20, dtype=torch.uint8, device="cuda")
        del freed
        torch.cuda.empty_cache()
        try: torch.empty(10 << 30, dtype=torch.uint8, device="cuda")
        except torch.OutOfMemoryError: pass
        torch.cuda.empty_cache()
        statistics = torch.cuda.memory_stats()
        print(torch.cuda.memory_reserved(), statistics["num_alloc_retries"], statistics["num_ooms"])
        wait_for_monitor()
    """, SIMGPU_VRAM_GB="1", PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True")
    reserved, retries, ooms = map(int, out.split())
    image = bench.image()
    assert image.live["virtual"] == reserved >= 300 << 20
    assert image.live["device"] == 0
    assert (image.retries, len([f for f in image.alloc_failures() if not f["retried"]])) == (retries, ooms)
    assert all(f["kind"] == "virtual" for f in image.alloc_failures())
