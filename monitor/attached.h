// One rank process that registered with the monitor.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/flight/reader.h"
#include "core/job/job.h"
#include "core/job/load.h"
#include "monitor/host_watch.h"
#include "monitor/mapping.h"
#include "monitor/server.h"

namespace dshang::monitor {

struct Attached {
  Connection connection;                  // closed once the process is gone or has closed its end
  Descriptor pidfd;                       // none on kernels without, and in foreign pid namespaces
  std::shared_ptr<const Mapping> memory;  // none while it has not registered again with a new monitor
  flight::Reader reader;
  job::LoadState load;
  job::Process* process = nullptr;  // of the attempt's Job
  std::size_t index = 0;            // in Job::processes
  std::int32_t pid = 0;             // in the monitor's pid namespace, 0 = not visible
  std::uint64_t key = 0;            // the same whenever the process registers, unlike that of any other
  HostWatch watch{0};
  std::uint64_t asked_ns = 0;  // when stacks were asked for
  std::string file_name;       // of its flight file
  bool unreadable = false;     // reading its records failed: they are left as they were then

  bool alive() const { return !process->journal.death.has_value(); }
  std::int32_t rank() const;  // as a communicator of all ranks says, else as the environment says; -1 = none
};

// Takes over what a rank handed over.  Null with `why` set when it cannot be used; the connection stays the
// caller's then.
std::unique_ptr<Attached> attach(Connection& connection, Registration registration, std::string* why);

// Whether the process still exists, for those without pidfd.
bool still_there(const Attached& attached);

}  // namespace dshang::monitor
