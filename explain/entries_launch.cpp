// Launchers, hostfile, devices.
#include <re2/re2.h>

#include "explain/hits.h"

namespace dshang::explain {
namespace {

// "port: 29511, useIpv6: …" of the one store, "[::]:29511 (errno: 98 …" of the other.
std::string port_in(const std::string& text) {
  static const re2::RE2 kPort(R"((?:address\. port: |:)(\d+)(?:, useIpv6| \(errno))");
  std::string port;
  re2::RE2::PartialMatch(text, kPort, &port);
  return port;
}

void port_in_use(const Entry& entry, const Observed& seen, Hits& hits) {
  const Sighting* sighting = seen.sighting(entry.id);
  if (!sighting) return;
  std::string port = port_in(sighting->text);
  Hits::Hit hit{sighting->first, sighting->speakers, sighting->count, "", sighting->text, "", false};
  if (!port.empty())
    hit.fix = "`ss -ltnp 'sport = :" + port + "'` names the process that has port " + port + ".";
  hits.add(hit);
}

}  // namespace

const Entries& launch_entries() {
  static const Entries entries = {
      {"12.3-3",
       Severity::kWillFail,
       "the rendezvous port is in use",
       {{R"(The server socket has failed to listen on any local network address\. port: \d+, .*EADDRINUSE)"},
        {R"(The server socket has failed to bind to .*:\d+ \(errno: 98 - Address already in use\))"}},
       "torch 2.4-2.14 (first), <= 2.3 or USE_LIBUV=0 (second)",
       "an old rank or another job has it",
       "End the process that listens there, or choose another port: deepspeed `--master_port`; torchrun "
       "--rdzv-endpoint=localhost:0.",
       "torch.distributed.TCPStore",
       Role::kCause,
       {},
       port_in_use},
      {"12.3-6",
       Severity::kWillFail,
       "the program was started without a launcher",
       {{R"(No module named 'mpi4py')"},
        {R"(DeepSpeed requires the LOCAL_RANK environment variable)"},
        {R"(environment variable (RANK|WORLD_SIZE|MASTER_ADDR|MASTER_PORT) expected, but not set)"},
        {R"(KeyError: '(LOCAL_RANK|RANK|WORLD_SIZE)')"}},
       "DeepSpeed 0.10-0.19.8, torch 2.x",
       "RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT are set by a launcher; DeepSpeed looks for "
       "MPI without "
       "them",
       "`deepspeed train.py` or `torchrun --nproc-per-node=N train.py`. Do not install mpi4py.",
       "DeepSpeed, comm/comm.py"},
      {"12.9-1",
       Severity::kWillFail,
       "a host cannot be reached by ssh without a password",
       {{R"(Using hostfile at .+ but host=.+ was not reachable via ssh)"},
        {R"(launcher '\w+' not installed)"},
        {R"(Host key verification failed)"},
        {R"(Permission denied \(publickey)"}},
       "DeepSpeed 0.10-0.19.8",
       "no key, an unknown host key, or no pdsh",
       "A key and ~/.ssh/config, `apt install pdsh`, or `--no_ssh --node_rank N` on each node.",
       "DeepSpeed, launcher/runner.py"},
      {"12.9-5",
       Severity::kWillFail,
       "the hostfile cannot be used",
       {{R"(Hostfile contains a bad entry: .*, unable to proceed)"},
        {R"(Hostfile contains multiple entries for \S+, unable to proceed)"},
        {R"(Hostfile is empty or not formatted correctly)"},
        {R"(Hostname '.+' not found in hostfile)"},
        {R"(No slot '\d+' specified on host '.+')"},
        {R"(Num nodes is >1 but no extra nodes available via hostfile)"}},
       "DeepSpeed 0.10-0.19.8",
       "one host a line, `name slots=GPUs`, no blanks around `=`, each host once",
       "`worker-1 slots=8`; `dshang doctor --hostfile F` names the line.",
       "DeepSpeed, launcher/runner.py"},
      {"E-18",
       Severity::kWillFail,
       "the program does not take the --local_rank that the launcher gives it",
       {{R"(error: unrecognized arguments: .*--local[_-]rank)"}},
       "DeepSpeed 0.10-0.19.8; torch.distributed.launch",
       "DeepSpeed's launcher adds --local_rank=N to the program's arguments (torch.distributed.launch: "
       "--local-rank)",
       "`parser.add_argument(\"--local_rank\", type=int, default=-1)`, or `deepspeed --no_local_rank`: "
       "LOCAL_RANK "
       "is in the environment.",
       "DeepSpeed, launcher/launch.py"},
      {"E-19",
       Severity::kWillFail,
       "the program's file cannot be opened",
       {{R"(can't open file '[^']+': \[Errno \d+\])"}},
       "Python 3",
       "a wrong path or directory, or a file that is not on this node",
       "Give a path that exists on every node (the launcher starts in the same directory there).",
       "Python; DeepSpeed, launcher/multinode_runner.py"},
      {"E-20",
       Severity::kWillFail,
       "a node lacks the Python of the job, or DeepSpeed in it",
       {{R"((^|: )/\S*/python[\d.]*: (No such file or directory|not found|Permission denied)$)"},
        {R"(/python[\d.]*: No module named deepspeed)"},
        {R"(Error while finding module specification for 'deepspeed\.launcher)"},
        {R"(^ModuleNotFoundError: No module named 'deepspeed')"}},
       "DeepSpeed 0.10-0.19.8",
       "the launcher runs the Python of the first node by its path on all nodes, with `-m "
       "deepspeed.launcher.launch`",
       "The same environment at the same path on every node, with DeepSpeed in it (`ssh HOST PYTHON -m pip "
       "show "
       "deepspeed`).",
       "DeepSpeed, launcher/multinode_runner.py"},
      {"X-19",
       Severity::kWillFail,
       "two ranks use the same GPU",
       {{R"(Duplicate GPU detected : rank \d+ and rank \d+ both on CUDA device)"},
        {R"(Multiple Ranks are using the same GPU/Partition)"}},
       "NCCL up to 2.2x (first), 2.30.7 (second)",
       "the same device was chosen twice",
       "`torch.cuda.set_device(int(os.environ[\"LOCAL_RANK\"]))` before anything else; correct "
       "CUDA_VISIBLE_DEVICES.",
       "NVIDIA/nccl#1241; verl-project/verl#161",
       Role::kCause,
       {"12.3-4"}},
      {"X-33",
       Severity::kWillFail,
       "a rank chose a GPU that does not exist (judged)",
       {{R"(invalid device ordinal)"}},
       "CUDA",
       "more processes than visible devices",
       "Correct `slots`, `--num_gpus` or CUDA_VISIBLE_DEVICES.",
       "deepspeedai/DeepSpeed#662, #3262"},
      {"X-44",
       Severity::kWrongResult,
       "CUDA_VISIBLE_DEVICES is ignored by the launcher",
       {{R"(Detected (CUDA_)?VISIBLE_DEVICES=\S* but ignoring it because one or several of)"}},
       "DeepSpeed 0.10-0.19.8",
       "the launcher writes its own list",
       "`--include localhost:2,3` alone, or the variable alone.",
       "deepspeedai/DeepSpeed#662, #1331, #5818"},
      {"X-47",
       Severity::kAdvice,
       "a variable of torch has a new name",
       {{R"(Environment variable NCCL_\w+ is deprecated; use TORCH_NCCL_\w+ instead)"}},
       "torch >= 2.2",
       "renamed; most old names are read no more",
       "Use the new name.",
       "torch"},
  };
  return entries;
}

}  // namespace dshang::explain
