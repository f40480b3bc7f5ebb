#include "core/rank/job_id.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/flight/hash.h"

namespace dshang::rank {
namespace {

// The terminating zero is hashed too: it keeps ("ab", "c") and ("a", "bc") apart, and null differs from empty.
std::uint64_t add(std::uint64_t hash, const char* text) {
  unsigned char present = text ? 1 : 0;
  hash = flight::fnv1a(&present, 1, hash);
  return text ? flight::fnv1a(text, strlen(text) + 1, hash) : hash;
}

std::uint64_t add(std::uint64_t hash, std::uint64_t number) { return flight::fnv1a(&number, sizeof number, hash); }

}  // namespace

// The link reads "net:[4026531840]" (namespaces(7)).
std::uint64_t namespace_inode(const char* name) {
  char path[64], target[64];
  snprintf(path, sizeof path, "/proc/self/ns/%s", name);
  ssize_t length = readlink(path, target, sizeof target - 1);
  if (length <= 0) return 0;
  target[length] = 0;
  const char* at = strchr(target, '[');
  std::uint64_t inode = 0;
  for (at = at ? at + 1 : nullptr; at && *at >= '0' && *at <= '9'; ++at) inode = inode * 10 + std::uint64_t(*at - '0');
  return inode;
}

JobParts job_parts_of_this_process() {
  JobParts parts;
  parts.user = getuid();
  parts.elastic_run = getenv("TORCHELASTIC_RUN_ID");
  parts.slurm_job = getenv("SLURM_JOB_ID");
  parts.slurm_step = getenv("SLURM_STEP_ID");
  parts.master_address = getenv("MASTER_ADDR");
  parts.master_port = getenv("MASTER_PORT");
  parts.directory = getenv("DSHANG_DIR");
  parts.net_namespace = namespace_inode("net");
  parts.pid_namespace = namespace_inode("pid");
  return parts;
}

std::uint64_t job_id(const JobParts& parts) {
  std::uint64_t hash = add(flight::kFnvOffset, std::uint64_t{parts.user});
  hash = add(hash, parts.elastic_run);
  hash = add(hash, parts.slurm_job);
  hash = add(hash, parts.slurm_step);
  hash = add(hash, parts.master_address);
  hash = add(hash, parts.master_port);
  hash = add(hash, parts.directory && *parts.directory ? parts.directory : nullptr);
  hash = add(hash, parts.net_namespace);
  hash = add(hash, parts.pid_namespace);
  return hash ? hash : 1;
}

}  // namespace dshang::rank
