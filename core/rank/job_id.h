// Which job a process belongs to: a number that is equal in all its processes of one node and unequal otherwise.
//
// Rank and monitor compute it from the same code.  Freestanding: no allocation, no libstdc++ object code.
// Threads: job_parts_of_this_process() reads the environment and has getenv's rules; the rest is pure.
#pragma once

#include <cstdint>

namespace dshang::rank {

// What the identity is made of.  Texts may be null; they are not owned.
struct JobParts {
  std::uint32_t user = 0;                 // real user id
  const char* elastic_run = nullptr;      // TORCHELASTIC_RUN_ID
  const char* slurm_job = nullptr;        // SLURM_JOB_ID
  const char* slurm_step = nullptr;       // SLURM_STEP_ID
  const char* master_address = nullptr;   // MASTER_ADDR
  const char* master_port = nullptr;      // MASTER_PORT
  const char* directory = nullptr;        // DSHANG_DIR
  std::uint64_t net_namespace = 0;        // inode of /proc/self/ns/net, 0 = unreadable
  std::uint64_t pid_namespace = 0;
};

JobParts job_parts_of_this_process();

// Never 0.
std::uint64_t job_id(const JobParts& parts);

// Inode number of a namespace of this process, e.g. "net"; 0 = unreadable.
std::uint64_t namespace_inode(const char* name);

}  // namespace dshang::rank
