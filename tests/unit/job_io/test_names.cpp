#include "catch.h"
#include "core/job/names.h"
#include "core/job/printable.h"
#include "core/job/site_policy.h"

using namespace dshang::job;

namespace {

SiteId stack(Names& names, const std::vector<std::pair<std::string, std::string>>& frames) {
  std::vector<FrameName> named;
  std::int32_t line = 10;
  for (const auto& [file, function] : frames)
    named.push_back({names.name(file), names.name(function), line++});
  return names.site(named, false);
}

}  // namespace

TEST_CASE("the frameworks where they are installed") {
  const std::string site = "/home/u/.venv/lib/python3.11/site-packages/";
  for (const char* file :
       {"torch/distributed/distributed_c10d.py", "torch/_ops.py", "deepspeed/runtime/engine.py",
        "deepspeed/utils/nvtx.py", "deepspeed/__init__.py", "accelerate/accelerator.py",
        "lightning/pytorch/trainer/trainer.py", "pytorch_lightning/loops/fit_loop.py",
        "transformers/trainer.py", "transformers/trainer_seq2seq.py", "transformers/trainer_utils.py"}) {
    INFO(file);
    CHECK(frame_owner(site + file) == FrameOwner::kFramework);
    CHECK(frame_owner(std::string("/usr/lib/python3/dist-packages/") + file) == FrameOwner::kFramework);
  }
  for (const char* file :
       {"transformers/models/llama/modeling_llama.py", "peft/peft_model.py", "trl/trainer/sft.py",
        "torchvision/models/resnet.py", "deepspeed_extra/x.py", "mymodels/torch/nn/layer.py"}) {
    INFO(file);
    CHECK(frame_owner(site + file) == FrameOwner::kLibrary);
  }
}

TEST_CASE("a user's directory that has a framework's name is the user's") {
  for (const char* file :
       {"/home/u/deepspeed/train.py", "/home/u/torch/model.py", "/home/u/accelerate/train.py",
        "/home/u/lightning/main.py", "/data/transformers/finetune.py", "deepspeed/train.py",
        "/home/u/transformers/trainer.py", "/home/u/deepspeed/utils/data.py", "train.py",
        "/workspace/DeepSpeedExamples/training/cifar/main.py", "/home/u/queue.py",
        "/tmp/ipykernel_123/456.py", "/home/u/python3/lib/x.py", "/opt/triton_kernels/train.py",
        "/home/deepspeed/project/train.py"}) {
    INFO(file);
    CHECK(frame_owner(file) == FrameOwner::kUser);
  }
}

TEST_CASE("frameworks in source checkouts") {
  for (const char* file :
       {"/home/u/DeepSpeed/deepspeed/runtime/zero/stage3.py", "/src/deepspeed/comm/comm.py",
        "/home/u/DeepSpeed-0.16/deepspeed/utils/groups.py", "/x/deepspeed/utils/nvtx.py",
        "/home/u/pytorch/torch/utils/data/dataloader.py", "/opt/torch/distributed/fsdp/api.py",
        "/home/u/accelerate/src/accelerate/optimizer.py", "/w/transformers/src/transformers/trainer.py",
        "/w/pytorch-lightning/src/lightning/fabric/fabric.py"}) {
    INFO(file);
    CHECK(frame_owner(file) == FrameOwner::kFramework);
  }
  CHECK(frame_owner("/w/transformers/src/transformers/models/bert/modeling_bert.py") == FrameOwner::kUser);
}

TEST_CASE("glue is nobody's code") {
  for (const char* file :
       {"", "<string>", "<frozen runpy>", "<eval_with_key>.5", "/usr/lib/python3.11/contextlib.py",
        "/opt/conda/lib/python3.10/threading.py", "/opt/conda/lib/python3.10/concurrent/futures/thread.py",
        "/usr/lib/python3.12/ctypes/__init__.py", "/usr/lib64/python3.9/runpy.py", "contextlib.py",
        "ctypes/__init__.py", "/usr/lib/python311.zip/queue.py/x", "/tmp/torchinductor_u/ab/cabc.py",
        "/home/u/.triton/cache/x.py", "/tmp/tmp_triton_1/k.py", "/home/u/.venv/bin/torchrun",
        "/usr/local/bin/deepspeed", "/opt/dshang/simgpu_python/simgpu_shim.py",
        "/v/lib/python3.11/site-packages/dshang/probe.py"}) {
    INFO(file);
    CHECK(frame_owner(file) == FrameOwner::kGlue);
  }
}

TEST_CASE("the site is the innermost frame outside the frameworks") {
  Names names;
  const std::string venv = "/v/lib/python3.11/";
  SiteId id =
      stack(names, {{venv + "site-packages/torch/distributed/distributed_c10d.py", "all_gather"},
                    {venv + "contextlib.py", "inner"},
                    {venv + "site-packages/deepspeed/runtime/zero/partition_parameters.py", "_all_gather"},
                    {venv + "site-packages/transformers/models/qwen/modeling.py", "MoE.forward"},
                    {venv + "site-packages/torch/nn/modules/module.py", "_call_impl"},
                    {"/home/u/project/train.py", "main"},
                    {"/home/u/project/train.py", "<module>"}});
  CHECK(names.place_text(names.site(id).place) == "qwen/modeling.py:13 MoE.forward");
  CHECK(names.place_text(names.site(id).user_place) == "project/train.py:15 main");
  CHECK(names.place_of(id) == names.site(id).place);
  SiteId none = stack(names, {{venv + "site-packages/torch/autograd/graph.py", "_engine_run_backward"}});
  CHECK(names.site(none).place == 0);
  CHECK(names.site(none).user_place == 0);
  CHECK(names.place_text(0) == "");
}

TEST_CASE("a wrapper named in DSHANG_SITE_SKIP is passed over, sites seen before included") {
  Names names;
  auto frames =
      std::vector<std::pair<std::string, std::string>>{{"/p/rankscript.py", "all_gather"},
                                                       {"/p/a07_save_on_rank_0_only.py", "save_checkpoint"},
                                                       {"/p/rankscript.py", "run"}};
  SiteId early = stack(names, frames);
  CHECK(names.place_text(names.place_of(early)) == "p/rankscript.py:10 all_gather");
  names.set_site_skip({"rankscript.py", ""});
  CHECK(names.place_text(names.place_of(early)) == "p/a07_save_on_rank_0_only.py:11 save_checkpoint");
  CHECK(names.site(early).user_place == names.site(early).place);
  CHECK(stack(names, frames) == early);
}

TEST_CASE("places are equal where the project lies elsewhere") {
  Names names;
  SiteId one = stack(names, {{"/home/a/project/train.py", "main"}});
  SiteId two = stack(names, {{"/mnt/node7/project/train.py", "main"}});
  SiteId other = stack(names, {{"/home/a/other/train.py", "main"}});
  CHECK(one != two);
  CHECK(names.place_of(one) == names.place_of(two));
  CHECK(names.place_of(one) != names.place_of(other));
  CHECK(names.text(names.place_frame(names.place_of(one)).file) == "project/train.py");
  CHECK(names.place_text(names.place({names.name("train.py"), 0, 3})) == "train.py:3");
  CHECK(names.place_text(names.place({0, names.name("f"), 0})) == "?:0 f");
}

TEST_CASE("names and sites are interned") {
  Names names;
  CHECK(names.name("") == 0);
  CHECK(names.text(0) == "");
  NameId id = names.name("forward");
  for (int i = 0; i < 1000; ++i) names.name(std::to_string(i));
  CHECK(names.name("forward") == id);
  CHECK(names.text(id) == "forward");
  CHECK(names.site({}, false) == 0);
  CHECK(names.site({{id, id, 1}}, false) != names.site({{id, id, 1}}, true));
  CHECK(names.site({{id, id, 1}}, true) == names.site({{id, id, 1}}, true));
  CHECK(names.site_count() == 3);
}

TEST_CASE("printable text") {
  CHECK(printable("plain\ttext\n") == "plain\ttext\n");
  CHECK(printable("h\xc3\xa9llo \xe2\x9c\x93 \xf0\x9f\x98\x80") ==
        "h\xc3\xa9llo \xe2\x9c\x93 \xf0\x9f\x98\x80");
  CHECK(printable(std::string("a\0b\x1b\x7f", 5)) == "a?b??");
  CHECK(printable("\xc0\x80\xed\xa0\x80\xf5\x80\x80\x80") == "?????????");
  CHECK(printable("\xc2\x9b"
                  "1m") == "?1m");
  CHECK(printable("cut \xe2\x9c") == "cut ??");
}
