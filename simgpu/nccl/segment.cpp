#include "simgpu/nccl/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>

namespace simgpu::nccl {
namespace {

size_t pages(size_t bytes) { return (bytes + 4095) & ~static_cast<size_t>(4095); }

struct Layout {
  size_t members, consumed, mailboxes, ring, mail, total;

  explicit Layout(int count) {
    const size_t n = static_cast<size_t>(count);
    members = pages(sizeof(Header));
    consumed = members + pages(sizeof(Member) * n);
    mailboxes = consumed + pages(sizeof(std::atomic<uint64_t>) * n * n);
    ring = mailboxes + pages(sizeof(Mailbox) * n * n);
    mail = ring + n * kRingSlots * kSlotBytes;
    total = mail + n * n * kMailSlots * kMailSlotBytes;
  }
};

void write_link_name(char* out, size_t bytes, uint64_t token) {
  snprintf(out, bytes, "simnccl-%016" PRIx64, token);
}

// Whether /proc/<pid>/fd/<fd> is this segment. Asked before it is opened: opening another file could block.
bool is_segment(const char* path, uint64_t token) {
  char wanted[64];
  char found[128];
  write_link_name(wanted, sizeof wanted, token);
  errno = 0;
  const ssize_t length = readlink(path, found, sizeof found - 1);
  if (length < 0) return false;
  found[length] = '\0';
  return strstr(found, wanted) != nullptr;
}

}  // namespace

bool create_segment(SegmentName* name) {
  uint64_t token = 0;
  if (getrandom(&token, sizeof token, 0) != static_cast<ssize_t>(sizeof token)) return false;
  char link_name[64];
  write_link_name(link_name, sizeof link_name, token);
  const int fd = memfd_create(link_name, MFD_CLOEXEC);
  if (fd < 0) return false;
  if (ftruncate(fd, static_cast<off_t>(pages(sizeof(Header)))) != 0) {
    close(fd);
    return false;
  }
  *name = {getpid(), fd, token};
  return true;
}

void release_segment(const SegmentName& name) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", name.fd);
  if (name.pid == getpid() && is_segment(path, name.token)) close(name.fd);
}

Segment::Status Segment::map(const SegmentName& name, int size) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/fd/%d", name.pid, name.fd);
  if (!is_segment(path, name.token)) return errno == EACCES ? Status::kFailed : Status::kGone;
  const int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return errno == ENOENT ? Status::kGone : Status::kFailed;

  void* first = mmap(nullptr, pages(sizeof(Header)), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (first == MAP_FAILED) {
    close(fd);
    return Status::kFailed;
  }
  uint32_t expected = 0;
  auto& shared_size = static_cast<Header*>(first)->size;
  const bool same = shared_size.compare_exchange_strong(expected, static_cast<uint32_t>(size)) ||
                    expected == static_cast<uint32_t>(size);
  munmap(first, pages(sizeof(Header)));
  if (!same) {
    close(fd);
    return Status::kOtherSize;
  }

  const Layout layout(size);
  void* base = MAP_FAILED;
  if (ftruncate(fd, static_cast<off_t>(layout.total)) == 0) {
    base = mmap(nullptr, layout.total, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  }
  close(fd);
  if (base == MAP_FAILED) return Status::kFailed;
  base_ = static_cast<char*>(base);
  bytes_ = layout.total;
  size_ = size;
  members_ = reinterpret_cast<Member*>(base_ + layout.members);
  consumed_ = reinterpret_cast<std::atomic<uint64_t>*>(base_ + layout.consumed);
  mailboxes_ = reinterpret_cast<Mailbox*>(base_ + layout.mailboxes);
  ring_ = base_ + layout.ring;
  mail_ = base_ + layout.mail;
  return Status::kOk;
}

Segment::~Segment() {
  if (base_ != nullptr) munmap(base_, bytes_);
}

}  // namespace simgpu::nccl
