#include "detectors/known_error.h"

#include "explain/explain.h"

namespace dshang::detect {
namespace {

// As Python prints it, so that entries that ask for a frame of DeepSpeed see it.
std::string traceback_text(const JobView& view, const job::Exception& exception) {
  const job::Names& names = view.names();
  std::string text;
  if (exception.site) {
    const auto& frames = names.site(exception.site).frames;
    for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame)
      text += "  File \"" + names.text(frame->file) + "\", line " + std::to_string(frame->line) + ", in " +
              names.text(frame->function) + "\n";
  }
  return text + names.text(exception.type) + ": " + names.text(exception.message) + "\n";
}

}  // namespace

void tell_known(const JobView& view, const job::Exception& exception, std::vector<std::string>& evidence,
                std::vector<std::string>& fix) {
  std::vector<explain::Finding> known = explain::explain_text(traceback_text(view, exception));
  // What a whole log decides, such as in which step memory ran out, one exception does not.
  if (known.empty() || known.front().entry->judge) return;
  const explain::Entry& entry = *known.front().entry;
  evidence.push_back("known error " + std::string(entry.id) + ": " + entry.summary + "; " + entry.cause);
  fix.insert(fix.begin(), known.front().fix.begin(), known.front().fix.end());
}

}  // namespace dshang::detect
