// Makes the faults that SIMNCCL_FAULT asks for (fault_setting.h).
#pragma once

#include "simgpu/nccl/fault_setting.h"

namespace simgpu::nccl {

class Comm;
struct Launch;

// Those that happen when the host makes a launch: kKernel and kKill. Called with the launch mutex held.
void make_host_faults(const Launch& launch);

// That which happens when the device comes to a call; nullptr: none.
const Fault* device_fault_of(const Comm& comm, uint64_t call);

void tell_fault(const Comm& comm, const Fault& fault);

}  // namespace simgpu::nccl
