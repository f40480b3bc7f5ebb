"""PyTorch Lightning with its DeepSpeed strategy (ZeRO-3), evaluating and saving.

With --mistake rank 1 leaves out a block in training_step, from step 4 on."""
import os
import tempfile

import common  # noqa: F401
import lightning
import torch
from lightning.pytorch.strategies import DeepSpeedStrategy
from torch.utils.data import DataLoader, TensorDataset

from small_model import BATCH, WIDTH, Block, arguments, say, zero_config

args = arguments(mistake="rank 1 leaves out a block, from step 4 on")


class Job(lightning.LightningModule):
    def configure_model(self):
        if not hasattr(self, "first"):
            torch.manual_seed(0)
            self.first, self.second, self.third = Block(), Block(), Block()

    def training_step(self, batch, number):
        x, target = batch
        x = self.first(x)
        if not (args.mistake and self.global_rank == 1 and number >= 4):
            x = self.second(x)
        loss = (self.third(x) - target).float().pow(2).mean()
        say(self.global_rank, f"step {number} loss {loss.item():.6f}")
        return loss

    def validation_step(self, batch, number):
        x, target = batch
        loss = (self.third(self.second(self.first(x))) - target).float().pow(2).mean()
        self.log("validation", loss, sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


config = {"zero_optimization": zero_config(3)["zero_optimization"]}     # the rest is Lightning's to set
samples = torch.randn(args.steps * BATCH * 2, WIDTH, generator=torch.Generator().manual_seed(1))
data = TensorDataset(samples, samples * 0.5)
trainer = lightning.Trainer(
    accelerator="gpu", devices=2, strategy=DeepSpeedStrategy(config=config), precision="bf16-true", max_epochs=1,
    logger=False, enable_progress_bar=False, enable_model_summary=False, default_root_dir=tempfile.gettempdir(),
    enable_checkpointing=False)
trainer.fit(Job(), DataLoader(data, batch_size=BATCH), DataLoader(data, batch_size=BATCH))
folder = trainer.strategy.broadcast(tempfile.mkdtemp())
trainer.save_checkpoint(os.path.join(folder, "last"))
say(trainer.global_rank, f"saved {len(os.listdir(os.path.join(folder, 'last')))} entries")
