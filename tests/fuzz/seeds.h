// What a fuzz target gives the driver to begin with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

// Valid inputs, and bytes worth inserting.
std::vector<std::string> fuzz_seeds();
std::vector<std::string> fuzz_words();
