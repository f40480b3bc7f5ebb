// Words for lists and numbers.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace dshang::explain {

std::string counted(std::uint64_t number, const std::string& one);  // "1 rank", "2 ranks"
std::string joined(const std::set<std::string>& words);             // "a, b"
// "rank 3", "ranks 0-2, 5"; the numbers in ascending order.
std::string ranks_text(const std::vector<int>& ranks);
std::string number_text(double number);       // four digits
std::string bytes_text(std::uint64_t bytes);  // "1.2 GB"

}  // namespace dshang::explain
