// Texts that a rank noted in pieces, because they are longer than a string of its flight memory
// (probe/dshang_probe/long_notes.py).
#pragma once

#include <functional>
#include <string>

namespace dshang::job {

// The newest value of a key, "" where none was noted.
using FactLookup = std::function<const std::string&(const std::string& key)>;

// The whole text under `key`; "" where there is none, or only a part of it was recorded.
std::string whole_text(const std::string& key, const FactLookup& fact);
// The beginning of one that was too long even for pieces; "" where there is none.
std::string cut_text(const std::string& key, const FactLookup& fact);

}  // namespace dshang::job
