// Programs in which the wrappers have to find the real functions: host SCENARIO, with the test preload.  0 = all
// went well.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "fakes/fake.h"
#include "interpose/symbols/types.h"

using namespace dshang::interpose::abi;

namespace {

[[noreturn]] void fail(const char* what, int code = 0) {
  std::fprintf(stderr, "%s (%d)%s%s\n", what, code, dlerror() ? ": " : "", "");
  std::exit(1);
}
void require(bool good, const char* what, int code = 0) {
  if (!good) fail(what, code);
}

std::string library(const char* name) { return std::string(std::getenv("FAKES")) + "/" + name; }

void* open_local(const char* name) {
  void* handle = dlopen(library(name).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::exit(1);
  }
  return handle;
}

template <typename F>
F function(void* handle, const char* name) {
  auto found = reinterpret_cast<F>(dlsym(handle, name));
  require(found != nullptr, name);
  return found;
}

std::uint64_t recorded() { return function<std::uint64_t (*)()>(RTLD_DEFAULT, "double_calls")(); }
std::uint64_t ledger_notes() { return function<std::uint64_t (*)()>(RTLD_DEFAULT, "double_memory_notes")(); }
int run(void* caller, char id) { return function<int (*)(char)>(caller, "caller_run")(id); }
const FakeControl& control(void* handle, const char* name = "fake_nccl_control") {
  return *function<const FakeControl* (*)()>(handle, name)();
}

// A wheel: caller and NCCL are both opened RTLD_LOCAL.
void local() {
  void* caller = open_local("libcaller.so");
  int code = run(caller, 'a');
  require(code == 0, "caller_run", code);
  require(recorded() == 3, "three calls are recorded", static_cast<int>(recorded()));
  require(control(caller).count("ncclAllReduce") == 1, "one call reaches NCCL");
  require(control(caller).count("ncclBroadcast") == 1, "ncclBcast calls ncclBroadcast");
}

// A source build: NCCL lies inside the caller.
void static_inside() {
  void* caller = open_local("libcaller_static.so");
  int code = run(caller, 'a');
  require(code == 0, "caller_run", code);
  require(recorded() == 3, "three calls are recorded", static_cast<int>(recorded()));
  require(control(caller).count("ncclAllReduce") == 1, "one call reaches NCCL");
}

// Both in one process: a communicator keeps its library, whoever calls.
void two_libraries() {
  void* wheel = open_local("libcaller.so");
  void* inside = open_local("libcaller_static.so");
  auto create_there = function<Comm (*)(char)>(inside, "caller_create"), create_here = function<Comm (*)(char)>(wheel, "caller_create");
  auto reduce_there = function<int (*)(Comm)>(inside, "caller_all_reduce"), reduce_here = function<int (*)(Comm)>(wheel, "caller_all_reduce");
  Comm there = create_there('a'), here = create_here('b');
  require(there && here, "both create");
  require(reduce_there(there) == 0 && reduce_here(here) == 0, "both reduce");
  require(control(wheel).count("ncclAllReduce") == 1, "one reaches the loaded library");
  require(control(inside).count("ncclAllReduce") == 1, "one reaches the static one");
  reduce_here(there);
  require(control(inside).count("ncclAllReduce") == 2, "a communicator keeps its library");
  require(recorded() == 3, "all are recorded");
}

// ctypes.CDLL(None): our wrapper is found by name, and the caller knows no NCCL.
void by_name() {
  void* nccl = open_local("libnccl.so.2");
  void* program = dlopen(nullptr, RTLD_NOW);
  auto init = function<Result (*)(CommOut, int, UniqueId, int)>(program, "ncclCommInitRank");
  require(reinterpret_cast<void*>(init) != dlsym(nccl, "ncclCommInitRank"), "the wrapper is found");
  Comm comm = nullptr;
  require(init(&comm, 2, UniqueId{}, 0) == Result::kSuccess && comm, "ncclCommInitRank");
  require(function<Result (*)(Comm)>(program, "ncclCommDestroy")(comm) == Result::kSuccess, "ncclCommDestroy");
  require(recorded() == 1, "destroy is recorded");
}

// The program names a library that NCCL comes in under a name of its own: found by looking at all objects.
void odd_name() {
  void* nccl = open_local("libodd_collectives.so");
  void* program = dlopen(nullptr, RTLD_NOW);
  Comm comm = nullptr;
  auto init = function<Result (*)(CommOut, int, UniqueId, int)>(program, "ncclCommInitRank");
  require(init(&comm, 2, UniqueId{}, 0) == Result::kSuccess && comm, "ncclCommInitRank");
  require(control(nccl).count("ncclCommInitRank") == 1, "it reaches NCCL");
}

// Versioned references (cudaMalloc@libcudart.so.13) meet an unversioned wrapper.
void versioned() {
  void* caller = open_local("libcaller.so");
  require(function<int (*)()>(caller, "caller_allocate")() == 0, "caller_allocate");
  require(control(caller, "fake_cudart_control").count("cudaMalloc") == 1, "it reaches the CUDA runtime");
  require(ledger_notes() == 2, "allocation and free are noted");
}

// No NCCL anywhere: refused, said once, no crash.  With DSHANG_NCCL_LIB it is loaded.
void missing() {
  void* caller = open_local("libcaller_missing.so");
  Comm comm = function<Comm (*)(char)>(caller, "caller_create")('a');
  if (std::getenv("DSHANG_NCCL_LIB")) {
    require(comm != nullptr, "NCCL is loaded");
    return;
  }
  require(comm == nullptr, "nothing is created");
  auto reduce = function<int (*)(Comm)>(caller, "caller_all_reduce");
  for (int i = 0; i < 3; ++i) require(reduce(nullptr) == static_cast<int>(Result::kInvalidUsage), "ncclInvalidUsage");
}

// Another preload wraps one function of NCCL: calls go through it.
void other_preload() {
  void* caller = open_local("libcaller.so");
  require(run(caller, 'a') == 0, "caller_run");
  require(function<int (*)()>(RTLD_DEFAULT, "other_calls")() == 1, "the other preload sees the call");
  require(control(caller).count("ncclAllReduce") == 1, "and hands it on");
  require(recorded() == 3, "recorded once");
}

[[noreturn]] void exits() { _exit(23); }
[[noreturn]] void exits_by_standard_name() { _Exit(24); }
[[noreturn]] void aborts() { std::abort(); }

struct {
  const char* name;
  void (*run)();
} scenarios[] = {{"local", local}, {"static", static_inside}, {"two", two_libraries}, {"by_name", by_name},
                 {"odd_name", odd_name}, {"versioned", versioned}, {"missing", missing}, {"other_preload", other_preload},
                 {"exits", exits}, {"exits_by_standard_name", exits_by_standard_name}, {"aborts", aborts}};

}  // namespace

int main(int, char** arguments) {
  for (auto& scenario : scenarios) {
    if (std::strcmp(scenario.name, arguments[1]) != 0) continue;
    scenario.run();
    return 0;
  }
  fail("no such scenario");
}
