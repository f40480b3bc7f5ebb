// What the catalogue of known errors (explain/) says of an exception that a rank raised.
#pragma once

#include "detectors/registry.h"

namespace dshang::detect {

// Adds cause to the evidence and the fix, before others, of `finding`; nothing where the exception is not
// known.
void tell_known(const JobView& view, const job::Exception& exception, std::vector<std::string>& evidence,
                std::vector<std::string>& fix);

}  // namespace dshang::detect
