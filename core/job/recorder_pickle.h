// Reads the pickles that PyTorch's Flight Recorder writes, and no others.
//
// Nothing is ever executed or imported: only the opcodes for plain data are known (None, booleans, integers,
// floats, texts, lists, tuples, dictionaries, and the memo), of protocols 2 to 5; any other ends the reading.
// Opcodes: the standard library's pickletools documents each of them.
//
// Failure: throws std::runtime_error with one line that says what and where.  Time and memory: proportional
// to the input, whatever it holds.
#pragma once

#include <string_view>

#include "core/job/recorder_value.h"

namespace dshang::job {

// Whether these are the first bytes of a pickle of such a protocol.
bool looks_like_pickle(std::string_view bytes);

// `bytes` must outlive the tree.
RecorderTree read_pickle(std::string_view bytes);

}  // namespace dshang::job
