// Facts of this machine, measured; but for measure_nodes and ask_… nothing takes longer than a
// fraction of a second.
#pragma once

#include "doctor/facts.h"

namespace dshang::doctor {

// This program's environment.
std::map<std::string, std::string> own_environment();
// Versions of installed Python packages, from the interpreter that the launch command (or PATH) would start.
void measure_packages(Facts* facts);
// /proc, /sys, limits, compilers, GPUs, lock files.
void measure_machine(Facts* facts);
// Ranks, nodes and trainer, from the launch command, the hostfile, the environment and the script.
void measure_job(Facts* facts);
// Interfaces, InfiniBand, and whether the port can be had: it is tried.
void measure_network(Facts* facts);
// The Python program that the launch command, or PATH, leads to; "" none.
std::string python_of(const Facts& facts);
// Lets the installed DeepSpeed check the config, for the job's number of ranks: some seconds, at most 60.
void ask_deepspeed(Facts* facts);
// The ops that ds_report lists, or why it fails: some seconds, at most 60.
void ask_ds_report(Facts* facts);
// The file systems that the config names.
void measure_places(Facts* facts);

// Every host of the hostfile over ssh, all at once; `folder` is where the job is started.  Up to 15 s.
void measure_nodes(const std::string& folder, Facts* facts);

}  // namespace dshang::doctor
