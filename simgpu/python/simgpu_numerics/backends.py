"""What torch may not choose on a simulated GPU."""


def restrict(torch, mode):
    # cuDNN is not simulated. torch has native kernels for convolutions and recurrent layers, and would choose cuDNN's
    # attention by itself on compute capability 9.0.
    torch.backends.cudnn.enabled = False
    torch.backends.cuda.enable_cudnn_sdp(False)
    if mode == "small":
        # Fused attention has no CPU kernel of the same signature; the composed one is evaluated step by step.
        torch.backends.cuda.enable_flash_sdp(False)
        torch.backends.cuda.enable_mem_efficient_sdp(False)
