// bench_calls: what an intercepted ncclAllReduce costs on an NCCL that does nothing, beside a malloc and free.
//
// Each way runs in a process of its own: without libdshang.so, with it from a C program (no call site), and with it
// from Python code of 20 and of 60 frames (with its call site).  Marks on the GPU are left out.  PYTHON names the
// interpreter (default python3).
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

extern "C" void measure_calls(double* call, double* malloc_free, double* clock);

namespace {

constexpr const char* kFromPython =
    "import ctypes, sys\n"
    "def down(n):\n"
    "    return loop.measure_calls(*map(ctypes.byref, found)) if n == 0 else down(n - 1)\n"
    "loop = ctypes.CDLL(sys.argv[1])\n"
    "found = [ctypes.c_double() for _ in range(3)]\n"
    "down(int(sys.argv[2]) - 1)\n"
    "print(*[value.value for value in found])\n";

struct Measured {
  double call = 0, malloc_free = 0, clock = 0;
};

bool run(const std::string& command, Measured* measured) {
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return false;
  int read = std::fscanf(pipe, "%lf %lf %lf", &measured->call, &measured->malloc_free, &measured->clock);
  return pclose(pipe) == 0 && read == 3;
}

}  // namespace

int main(int, char** arguments) {
  if (arguments[1] && std::strcmp(arguments[1], "--measure") == 0) {
    Measured m;
    measure_calls(&m.call, &m.malloc_free, &m.clock);
    std::printf("%f %f %f\n", m.call, m.malloc_free, m.clock);
    return 0;
  }
  char folder[] = "/tmp/bench-calls-XXXXXX";
  if (!mkdtemp(folder)) return 1;
  std::string with = "env LD_PRELOAD='" BENCH_FOLDER "/libdshang.so' DSHANG_PROBE=0 DSHANG_GPU_MARKS=0 DSHANG_DIR='" + std::string(folder) + "' ";
  const char* python = std::getenv("PYTHON");
  std::string from_python = std::string(python ? python : "python3") + " -c '" + kFromPython + "' '" BENCH_LOOP "' ";
  std::string from_c = "'" BENCH_FOLDER "/bench_calls' --measure";
  struct {
    const char* name;
    std::string command;
  } ways[] = {{"bare", from_c},
              {"recorded, no call site", with + from_c},
              {"recorded, call site of 20 frames", with + from_python + "20"},
              {"recorded, call site of 60 frames", with + from_python + "60"},
              {"the same, DSHANG_PYTHON_STACKS=0", with + "DSHANG_PYTHON_STACKS=0 " + from_python + "20"}};
  std::printf("%-36s %12s %14s %8s %10s\n", "ncclAllReduce on a null NCCL", "ns a call", "ns malloc+free", "ratio", "ns a clock");
  bool all = true;
  for (auto& way : ways) {
    Measured m;
    bool good = run(way.command, &m);
    all = all && good;
    if (!good) {
      std::printf("%-36s failed\n", way.name);
      continue;
    }
    std::printf("%-36s %12.1f %14.1f %8.2f %10.1f\n", way.name, m.call, m.malloc_free, m.call / m.malloc_free, m.clock);
  }
  std::string clean = "rm -rf '" + std::string(folder) + "'";
  return std::system(clean.c_str()) == 0 && all ? 0 : 1;
}
