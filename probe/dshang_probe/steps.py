"""Which training step this rank is in.

A step begins at the first training forward after the boundary before it, so that evaluation and saving after a step
belong to the step before.  DeepSpeed counts steps itself (engine.global_steps); without it the optimizer that steps
first is counted.  Both count from 0, or from where a checkpoint left off.
"""
import weakref


class Steps:
    def __init__(self, native, memory):
        self.native, self.memory = native, memory
        self.engine = None            # weak reference to the engine whose steps count
        self.announced = None
        self.first_micro = 0
        self.micro = 0
        self.optimizer = None         # plain torch: weak reference to the optimizer whose steps count
        self.made = 0                 # plain torch: steps made
        self.at_begin = []            # function(step), called when a step begins

    def engine_forward(self, engine):
        """A DeepSpeed engine begins a forward."""
        if not getattr(engine.module, "training", True) or getattr(engine, "optimizer", None) is None:
            return
        mine = self.engine() if self.engine is not None else None
        if mine is None:
            self.engine = weakref.ref(engine)
        elif mine is not engine:
            return                    # a second engine (RLHF): the first one's steps are the job's
        step, micro_steps = engine.global_steps, engine.micro_steps
        if step != self.announced:
            self.first_micro = micro_steps
            self._begin(step)
        else:
            self._micro(micro_steps - self.first_micro)

    def plain_forward(self):
        """A model begins a training forward without DeepSpeed."""
        if self.engine is not None:
            return
        if self.made != self.announced:
            self._begin(self.made)
        else:
            self._micro(self.micro + 1)

    def optimizer_done(self, optimizer):
        """An optimizer has made a step without DeepSpeed."""
        if self.engine is not None or self.announced is None:
            return
        mine = self.optimizer() if self.optimizer is not None else None
        if mine is None:
            self.optimizer = weakref.ref(optimizer)
        elif mine is not optimizer:
            return                    # a second optimizer (GAN): counting it too would double the steps
        if self.made == self.announced:
            self.made += 1

    def stepping(self):
        """The optimizer whose steps count, None while that is not known."""
        engine = self.engine() if self.engine is not None else None
        if engine is not None:
            return getattr(engine, "optimizer", None)
        return self.optimizer() if self.optimizer is not None else None

    def _begin(self, step):
        self.memory.step_ends()
        self.announced, self.micro = step, 0
        self.native.step(step)
        for function in self.at_begin:
            function(step)

    def _micro(self, micro):
        if micro != self.micro:
            self.micro = micro
            self.native.micro_step(micro)
