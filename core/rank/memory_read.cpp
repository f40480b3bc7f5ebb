#include "core/rank/memory_read.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>

namespace dshang::rank {
namespace {

std::atomic<bool> vm_read_denied{false};

}  // namespace

void CheckedMemory::deny_vm_read(bool deny) { vm_read_denied.store(deny); }

CheckedMemory::~CheckedMemory() {
  if (pipe_[0] < 0) return;
  close(pipe_[0]);
  close(pipe_[1]);
}

bool CheckedMemory::read(std::uintptr_t from, void* to, std::size_t bytes) const {
  if (!bytes) return true;
  if (!vm_read_denied.load(std::memory_order_relaxed)) {
    iovec here{to, bytes}, there{reinterpret_cast<void*>(from), bytes};
    ssize_t got = process_vm_readv(getpid(), &here, 1, &there, 1, 0);
    if (got == static_cast<ssize_t>(bytes)) return true;
    if (got >= 0 || (errno != EPERM && errno != ENOSYS)) return false;
    vm_read_denied.store(true, std::memory_order_relaxed);
  }
  return read_by_pipe(from, to, bytes);
}

bool CheckedMemory::read_by_pipe(std::uintptr_t from, void* to, std::size_t bytes) const {
  if (pipe_[0] < 0 && pipe2(pipe_, O_CLOEXEC | O_NONBLOCK) != 0) {
    pipe_[0] = pipe_[1] = -1;
    return false;
  }
  char* out = static_cast<char*>(to);
  while (bytes) {
    std::size_t part = bytes < 4096 ? bytes : 4096;
    ssize_t written = write(pipe_[1], reinterpret_cast<const void*>(from), part);
    if (written <= 0) return false;
    if (::read(pipe_[0], out, static_cast<std::size_t>(written)) != written) return false;
    // A short write ends at the first page that is not there; the next round says so.
    from += static_cast<std::size_t>(written);
    out += written;
    bytes -= static_cast<std::size_t>(written);
  }
  return true;
}

}  // namespace dshang::rank
