#include "interpose/runtime/own_descriptor.h"

#include <unistd.h>

#include "interpose/runtime/libc_base.h"

namespace dshang::interpose {

void OwnDescriptor::take(int fd) {
  fd_.store(-1, std::memory_order_relaxed);
  bool known = libc::file_identity(fd, &device_, &inode_);
  fd_.store(known ? fd : -1, std::memory_order_release);
}

bool OwnDescriptor::is_still_ours() const {
  std::uint64_t device, inode;
  int fd = number();
  return fd >= 0 && libc::file_identity(fd, &device, &inode) && device == device_ && inode == inode_;
}

void OwnDescriptor::close() {
  if (is_still_ours()) ::close(number());
  fd_.store(-1, std::memory_order_release);
}

}  // namespace dshang::interpose
