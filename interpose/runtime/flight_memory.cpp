#include "interpose/runtime/flight_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "interpose/runtime/libc_base.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace dshang::interpose {
namespace {

constexpr int kHighDescriptor = 600;

// MFD_NOEXEC_SEAL is demanded where vm.memfd_noexec is 2 and unknown before Linux 6.3.
int make_memfd() {
  unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  long fd = syscall(SYS_memfd_create, "dshang", flags | MFD_NOEXEC_SEAL);
  if (fd < 0 && errno == EINVAL) fd = syscall(SYS_memfd_create, "dshang", flags);
  return static_cast<int>(fd);
}

int make_unlinked_file() {
  const char* directory = getenv("TMPDIR");
  if (!directory || !*directory) directory = "/tmp";
  int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd >= 0) return fd;
  char path[512];
  int length = snprintf(path, sizeof path, "%s/dshang-XXXXXX", directory);
  if (length >= static_cast<int>(sizeof path)) return -1;
  fd = mkostemp(path, O_CLOEXEC);
  if (fd >= 0) unlink(path);
  return fd;
}

// Some file systems cannot reserve; writing zeros does the same.
bool reserve(int fd, std::size_t bytes) {
  if (fallocate(fd, 0, 0, static_cast<off_t>(bytes)) == 0) return true;
  if (errno != EOPNOTSUPP && errno != ENOSYS) return false;
  static const char kZeros[4096] = {};
  for (std::size_t at = 0; at < bytes; at += sizeof kZeros) {
    std::size_t length = bytes - at < sizeof kZeros ? bytes - at : sizeof kZeros;
    if (pwrite(fd, kZeros, length, static_cast<off_t>(at)) != static_cast<ssize_t>(length)) return false;
  }
  return true;
}

// Growing a file beyond RLIMIT_FSIZE sends SIGXFSZ, which would end the host.
bool size_is_allowed(std::size_t bytes) {
  rlimit limit;
  return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= bytes;
}

FlightMemory refuse(const char* why, int fd = -1) {
  if (fd >= 0) close(fd);
  FlightMemory none;
  none.why = why;
  return none;
}

}  // namespace

int move_up(int fd) {
  if (fd < 0 || fd >= kHighDescriptor) return fd;
  int high = fcntl(fd, F_DUPFD_CLOEXEC, kHighDescriptor);
  if (high < 0) return fd;
  close(fd);
  return high;
}

FlightMemory make_flight_memory(std::size_t bytes) {
  if (!size_is_allowed(bytes)) return refuse("the limit on file sizes (ulimit -f) is too small");
  FlightMemory memory;
  memory.fd = make_memfd();
  memory.sealed = memory.fd >= 0;
  if (memory.fd < 0) memory.fd = make_unlinked_file();
  if (memory.fd < 0) return refuse("neither memfd_create nor a file in the temporary directory is allowed");
  memory.fd = move_up(memory.fd);
  if (!reserve(memory.fd, bytes)) return refuse("the memory for it could not be reserved", memory.fd);
  if (memory.sealed && fcntl(memory.fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    memory.sealed = false;
  }
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory.fd, 0);
  if (base == MAP_FAILED) return refuse("it could not be mapped", memory.fd);
  // A forked child must not write its parent's records.
  if (madvise(base, bytes, MADV_DONTFORK) != 0) {
    munmap(base, bytes);
    return refuse("it could not be kept from forked children", memory.fd);
  }
  memory.base = base;
  memory.bytes = bytes;
  libc::file_identity(memory.fd, &memory.device, &memory.inode);
  return memory;
}

bool still_open(const FlightMemory& memory) {
  std::uint64_t device, inode;
  return memory.fd >= 0 && libc::file_identity(memory.fd, &device, &inode) && device == memory.device &&
         inode == memory.inode;
}

void touch_flight_memory(const FlightMemory& memory) {
  madvise(memory.base, memory.bytes,
          MADV_POPULATE_WRITE);  // unknown before Linux 5.14: then pages fault one by one
}

}  // namespace dshang::interpose
