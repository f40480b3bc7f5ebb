#include "interpose/resolve/asked.h"

#include "interpose/runtime/log.h"

namespace dshang::interpose::resolve {
namespace {

std::atomic<void*> functions[kRows];
std::atomic<LibraryId> library{kNoLibrary};

}  // namespace

bool ask(Row row, void* real) {
  LibraryId holding = library_holding(info(row).name, real);
  if (holding == kNoLibrary) return false;
  LibraryId first = kNoLibrary;
  if (!library.compare_exchange_strong(first, holding, std::memory_order_acq_rel) && first != holding) {
    DSHANG_LOG_ONCE("a second NCCL is looked up through dlsym; what is called that way is not seen");
    return false;
  }
  functions[index(row)].store(real, std::memory_order_release);
  return true;
}

void* asked_function(Row row) { return functions[index(row)].load(std::memory_order_acquire); }

LibraryId asked_library() { return library.load(std::memory_order_acquire); }

}  // namespace dshang::interpose::resolve
