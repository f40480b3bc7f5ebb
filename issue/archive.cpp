#include "issue/archive.h"

#include <sys/stat.h>
#include <unistd.h>

#include "doctor/command.h"

namespace dshang::issue {

std::string pack(const std::string& parent, const std::string& name, const std::string& archive) {
  constexpr double kPatience = 60;  // seconds
  for (const char* program : {"tar", "zstd"}) {
    if (doctor::on_path(program).empty()) return std::string(program) + " is not installed";
  }
  const mode_t before = umask(077);
  int status = 0;
  std::string said =
      doctor::output_of({"tar", "--force-local", "--owner=0", "--group=0", "--use-compress-program=zstd -q",
                         "--directory=" + parent, "--file=" + archive, "-c", "--", name},
                        kPatience, &status);
  umask(before);
  if (status == 0) return "";
  unlink(archive.c_str());
  std::string why = said.substr(0, said.find('\n'));
  return "tar " + (why.empty() ? "did not end in time" : "said: " + why);
}

}  // namespace dshang::issue
