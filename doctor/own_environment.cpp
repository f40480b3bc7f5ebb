#include <unistd.h>

#include "doctor/measure.h"

extern char** environ;

namespace dshang::doctor {

std::map<std::string, std::string> own_environment() {
  std::map<std::string, std::string> result;
  for (char** at = environ; *at; ++at) {
    std::string entry = *at;
    std::size_t equals = entry.find('=');
    if (equals != std::string::npos) result[entry.substr(0, equals)] = entry.substr(equals + 1);
  }
  return result;
}

}  // namespace dshang::doctor
