// A program that is linked with NCCL, as one written in C++ is.
#include <dlfcn.h>

#include <cstdint>

extern "C" int caller_run(char id);

int main() {
  if (int code = caller_run('a')) return code;
  auto recorded = reinterpret_cast<std::uint64_t (*)()>(dlsym(RTLD_DEFAULT, "double_calls"));
  return recorded && recorded() == 3 ? 0 : 10;
}
