// Any readable records of a job, beside any journal: they are aligned and explained, twice in the same words.  Lines that
// cannot be read are left out, so that most mutations reach the detectors.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "detectors/run.h"
#include "core/job/report.h"
#include "tests/fuzz/seeds.h"
#include "tests/unit/snapshot.h"

using namespace dshang;

namespace {

constexpr const char* kJournal = "%%journal\n";

[[noreturn]] void fail(const char* what, const std::string& input) {
  std::fprintf(stderr, "fuzz_analyse: %s\n%s\n", what, input.c_str());
  std::abort();
}

void erase_line(std::string& text, std::size_t number) {
  std::size_t begin = 0;
  for (; number > 1 && begin < text.size(); --number) begin = std::min(text.find('\n', begin), text.size() - 1) + 1;
  text.erase(begin, text.find('\n', begin) - begin);
}

// What is readable of it.
std::string readable(std::string text) {
  for (int refused = 0; refused < 50; ++refused) {
    job::Names names;
    std::string error = job::parse(text, names).error;
    if (error.empty()) return text;
    erase_line(text, std::strtoul(error.c_str() + sizeof "line " - 1, nullptr, 10));
  }
  return "";
}

std::string report_of(const std::string& records, const std::string& journal) {
  job::Job job;
  try {
    snapshot::fill(job, records, journal);
  } catch (const std::runtime_error& error) {  // of a line of the journal, as its reader promises
    return error.what();
  }
  job::FindingHistory history;
  bool has_news = false;
  return job::text_of(history.update(job, detect::analyse(job), &has_news));
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> seeds;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(DSHANG_GOLDEN_DIR)) {
    if (entry.path().extension() != ".txt" || entry.path().parent_path() == DSHANG_GOLDEN_DIR) continue;
    std::filesystem::path journal = entry.path();
    journal.replace_extension(".journal");
    std::string seed = snapshot::read(entry.path());
    if (std::filesystem::exists(journal)) seed += kJournal + snapshot::read(journal);
    if (seed.size() < 20'000) seeds.push_back(std::move(seed));
  }
  std::sort(seeds.begin(), seeds.end());
  return seeds;
}

std::vector<std::string> fuzz_words() {
  return {"\nrank 5 pid 9 world 9\n", "\ncomm other size=2 id=0x7\n", "\ncall all_gather 7 bf16\n", "\ncall send 5 f32 peer=1\n",
          "\nvisit phase_pop\n", "\nvisit phase_push backward\n", "\nvisit step 9\n", "\nvisit module_enter a.b\n", "\nvisit module_exit\n",
          "\nvisit teardown\n", " queued", " started", " group=1", " done=-", " comm=other", " module=a.b", "\nending signal 9 at=2\n",
          "\nalloc_failed 100 kind=device at=4.5\n", "\nmemory step=1 device=100 device_peak=200\n", " at=99999999999", " step=-", kJournal,
          "\nfirst calls=10\n", "\nexception ValueError \"x\"\n"};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string input(reinterpret_cast<const char*>(data), size);
  std::size_t marker = input.find(kJournal);
  std::string records = readable(input.substr(0, marker));
  std::string journal = marker == input.npos ? "" : input.substr(marker + std::char_traits<char>::length(kJournal));
  std::string once = report_of(records, journal);
  if (once != report_of(records, journal)) fail("two reports of the same records differ", input);
  if (once.find("\n\n\n") != once.npos || once.empty()) fail("not a report", once);
  return 0;
}
