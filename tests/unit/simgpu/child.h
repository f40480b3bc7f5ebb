// Parts of a test that need a process of their own: other settings, a fork, a faulted device.
#pragma once

#include <string>
#include <vector>

struct ChildResult {
  int status;          // exit status; 128 + signal number if it was killed
  std::string output;  // stdout and stderr
};

// Runs a hidden test case of this program ("[.name]") with the given settings ("NAME=value").
ChildResult run_test_in_child(const std::string& tag, const std::vector<std::string>& settings);

// Runs a command with libsimcuda.so preloaded.
ChildResult run_preloaded(const std::vector<std::string>& command, const std::vector<std::string>& settings);
