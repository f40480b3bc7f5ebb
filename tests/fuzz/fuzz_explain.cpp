// Any bytes taken for a log, in pieces of any size: it is explained on one screen, in valid text, and the
// size of the pieces changes nothing.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "core/job/printable.h"
#include "explain/output.h"
#include "explain/scan.h"
#include "tests/fuzz/seeds.h"

using namespace dshang;

namespace {

[[noreturn]] void fail(const char* what, const std::string& more) {
  std::fprintf(stderr, "fuzz_explain: %s\n%s\n", what, more.c_str());
  std::abort();
}

std::string told_of(std::string_view text, std::size_t piece) {
  explain::Observed observed;
  observed.files.push_back({"log", 0, 0, {}, "", ""});
  explain::Scan scan(explain::Catalogue::shared(), &observed);
  for (; !text.empty(); text.remove_prefix(std::min(piece, text.size()))) scan.feed(text.substr(0, piece));
  scan.end();
  std::vector<explain::Finding> findings = explain::explain(observed);
  std::string screen = explain::text_of(findings, observed);
  if (static_cast<std::size_t>(std::count(screen.begin(), screen.end(), '\n')) > explain::kMostLines)
    fail("more than a screen", screen);
  if (job::printable(screen) != screen) fail("text that is not valid", screen);
  return explain::json_of(findings, observed) + screen;
}

constexpr const char* kRanks = R"([rank0]: Traceback (most recent call last):
[rank1]: Traceback (most recent call last):
[rank0]:   File "/x/deepspeed/runtime/zero/stage3.py", line 840, in _configure
[rank1]:   File "train.py", line 8, in main
[rank0]: TypeError: expected str, bytes or os.PathLike object, not NoneType
[rank1]: ValueError: odd

During handling of the above exception, another exception occurred:
worker-1: [rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.
[rank2]:[E1102 10:00:00.1 ProcessGroupNCCL.cpp:607] [Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=54, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600011 milliseconds before timing out.
[rank2]:[E1102 10:00:00.1 ProcessGroupNCCL.cpp:1785] [PG ID 0 PG GUID 0(default_pg) Rank 2] Exception (either an error or timeout) detected by watchdog at work: 54, last enqueued NCCL work: 56, last completed NCCL work: 53.
[1,3]<stderr>:4: [default3]:[ERROR] exits with return code = -9
)";

constexpr const char* kNumbers = R"({'loss': 2.50, 'grad_norm': 1.0, 'epoch': 0.1}
step 12 loss: nan grad_norm: inf eval_loss: nan
 5%|#  | 412/900 [00:01<00:10,  9.2it/s]
[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768
4 pytorch allocator cache flushes since last step
w1:311:380 [0] NCCL INFO comm 0x1 rank 0 nRanks 16 nNodes 2 localRanks 8 localRank 0
w1:311:380 [0] NCCL INFO Channel 00/0 : 7[ca000] -> 6[c7000] [send] via NET/Socket/3
w1:311:380 [0] NCCL INFO ncclCommInitRank comm 0x1 rank 0 nranks 16 commId 0x4 - Init START
Using /home/user/.cache/torch_extensions as PyTorch extensions root...
)";

}  // namespace

std::vector<std::string> fuzz_seeds() { return {kRanks, kNumbers}; }

std::vector<std::string> fuzz_words() {
  return {"\n",
          "\r",
          "\r\n",
          "\x1b[31m",
          "\x1b[",
          "[rank999999999]: ",
          "[default0]:",
          "3: ",
          "worker-1: ",
          "(A pid=1, ip=::1) ",
          "loss",
          "loss:",
          "nan",
          "1e999",
          "grad_norm=",
          "step 4294967296",
          " [",
          "/",
          "it/s",
          "  File \"",
          "Traceback (most recent call last)",
          "he above exception",
          "Exception ignored in",
          "WorkNCCL(SeqNum=",
          "\xff\xfe",
          "\xe2\x82",
          " via NET/",
          "commId ",
          " rank ",
          " nranks 2147483648",
          "world_size: 99999999"};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  std::string whole = told_of(text, std::max<std::size_t>(size, 1));
  for (std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{100}}) {
    if (told_of(text, piece) != whole) fail("other pieces, other words", std::string(text));
  }
  return 0;
}
