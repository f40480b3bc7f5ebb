#include "detectors/progress.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "detectors/words.h"

namespace dshang::detect {
namespace {

// The tid of the process's main thread equals its pid in its own namespace.
bool is_main_stack(const job::RankView& rank, const job::Stack& stack) {
  return stack.tid == static_cast<std::uint32_t>(rank.records().pid);
}

void read_stacks(const JobView& view, const job::RankView& rank, double window, Progress& p) {
  const auto& stacks = rank.records().stacks;
  job::PlaceId newest = 0;
  for (std::uint64_t n = stacks.end(); n-- > stacks.first();) {
    const job::Stack& stack = stacks.at(n);
    if (!is_main_stack(rank, stack) || !stack.site) continue;
    const job::Site& site = view.names().site(stack.site);
    job::PlaceId place = site.user_place ? site.user_place : site.place;
    if (p.frames.empty()) {
      newest = place;
      p.innermost = view.names().place_text(place);
      for (const job::FrameName& frame : site.frames) {
        p.frames.push_back(view.names().text(frame.file) + ":" + std::to_string(frame.line) + " " +
                           view.names().text(frame.function));
      }
      continue;
    }
    if (view.ago(stack.time_ns) > window) break;
    if (newest && place &&
        view.names().place_frame(place).function != view.names().place_frame(newest).function)
      p.stack_moved = true;
  }
}

// The first sample of the window that was taken behind `since_ns`; where those cover too little of the time
// since then, the one before them.
const job::HostSample* oldest_sample(const std::vector<job::HostSample>& samples, double window,
                                     std::uint64_t since_ns) {
  if (samples.empty()) return nullptr;
  std::uint64_t newest_ns = samples.back().time_ns;
  auto in_window = [&](const job::HostSample& sample) {
    return seconds_between(sample.time_ns, newest_ns) <= window * 1.1;
  };
  auto first = std::find_if(samples.begin(), samples.end(), [&](const job::HostSample& sample) {
    return sample.time_ns >= since_ns && in_window(sample);
  });
  bool covers = first != samples.end() && 2 * seconds_between(first->time_ns, newest_ns) >=
                                              std::min(window, seconds_between(since_ns, newest_ns));
  if (!covers && first != samples.begin() && in_window(*std::prev(first))) --first;
  return first == samples.end() ? nullptr : &*first;
}

std::string rate(std::int64_t bytes, double seconds) {
  return bytes_text(static_cast<std::uint64_t>(static_cast<double>(bytes) / std::max(seconds, 0.1))) + "/s";
}

// Whether one of its words, between everything that is no letter or digit, is one of these.
bool has_word(std::string_view text, std::initializer_list<std::string_view> words) {
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && std::isalnum(static_cast<unsigned char>(text[end]))) ++end;
    if (std::count(words.begin(), words.end(), text.substr(at, end - at)) > 0) return true;
    at = end + 1;
  }
  return false;
}

// Where the kernel holds it, and the functions on top of its Python stack ("file:line function").
bool sleeps_in(const Progress& p, std::initializer_list<std::string_view> words) {
  auto function = [](std::string_view frame) { return frame.substr(frame.rfind(' ') + 1); };
  return has_word(p.sleeping_in, words) || has_word(function(p.innermost), words) ||
         (!p.frames.empty() && has_word(function(p.frames[0]), words));
}

}  // namespace

double seconds_between(std::uint64_t from_ns, std::uint64_t to_ns) {
  return to_ns > from_ns ? static_cast<double>(to_ns - from_ns) / 1e9 : 0;
}

Progress progress_of(const JobView& view, const job::RankView& rank, double window, std::uint64_t since_ns) {
  Progress p;
  p.window = window;
  const auto& samples = rank.journal().samples;
  const job::HostSample* oldest = oldest_sample(samples, window, since_ns);
  if (oldest && oldest != &samples.back()) {
    const job::HostSample& newest = samples.back();
    p.known = true;
    p.window = static_cast<double>(newest.time_ns - oldest->time_ns) / 1e9;
    if (oldest->cpu_seconds && newest.cpu_seconds) p.cpu_seconds = *newest.cpu_seconds - *oldest->cpu_seconds;
    if (oldest->other_cpu_seconds && newest.other_cpu_seconds)
      p.other_cpu = *newest.other_cpu_seconds - *oldest->other_cpu_seconds;
    if (oldest->read_bytes && newest.read_bytes)
      p.read = static_cast<std::int64_t>(*newest.read_bytes - *oldest->read_bytes);
    if (oldest->written_bytes && newest.written_bytes)
      p.written = static_cast<std::int64_t>(*newest.written_bytes - *oldest->written_bytes);
    auto running =
        std::count_if(oldest, &newest + 1, [](const job::HostSample& sample) { return sample.state == 'R'; });
    p.runnable = 2 * running > &newest - oldest;
    if (newest.graph_launches > oldest->graph_launches) p.graph_launches = newest.graph_launches - oldest->graph_launches;
    p.sleeping_in = newest.syscall.empty() ? newest.wchan : newest.syscall;
    if (p.cpu_seconds < 0 && p.read < 0 && p.written < 0 && !p.graph_launches) p.known = false;
  }
  read_stacks(view, rank, since_ns ? std::min(window, view.ago(since_ns)) : window, p);
  return p;
}

std::vector<std::string> evidence_of_progress(const Progress& p) {
  std::vector<std::string> lines;
  std::string in_window = " in the last " + seconds_text(p.window);
  if (!p.known) {
    lines.push_back("CPU time and I/O of the process could not be read: whether it advances is not known");
  } else if (p.advances()) {
    std::string line = "it makes progress: CPU " + seconds_text(std::max(p.cpu_seconds, 0.0)) + in_window;
    if (p.read >= 0)
      line += ", I/O: read " + rate(p.read, p.window) + ", written " + rate(p.written, p.window);
    if (p.graph_launches) line += ", " + std::to_string(p.graph_launches) + " CUDA graphs replayed";
    lines.push_back(line);
  } else {
    lines.push_back("no progress: CPU 0" + std::string(p.cpu_seconds >= 0.05 ? "+" : "") +
                    " s, no bytes of I/O read or written" + in_window +
                    (p.sleeping_in.empty() ? "" : "; sleeping in " + p.sleeping_in));
  }
  if (p.known && !p.advances() && p.others_work())
    lines.push_back("other threads of its process used " + seconds_text(p.other_cpu) + " of CPU" + in_window +
                    ": it may wait for them");
  if (!p.frames.empty()) {
    std::string line = "Python stack, innermost first:";
    for (std::size_t i = 0; i < p.frames.size() && i < 6; ++i) line += (i ? " < " : " ") + p.frames[i];
    lines.push_back(line);
  }
  return lines;
}

std::vector<std::string> fixes_of_progress(const Progress& p, bool advances) {
  if (advances) {
    return {
        "Do long work of one rank ahead of the job or offline (preprocess, tokenize, download once), or on "
        "all ranks in parallel.",
        "Saving on one rank: write sharded or asynchronously (every rank its part) instead of gathering on "
        "rank 0.",
        "If it must take that long, give the process group a time-out that covers it."};
  }
  if (sleeps_in(p,
                {"write", "read", "pread64", "pwrite64", "readv", "writev", "pipe", "fsync", "nfs", "io"})) {
    return {
        "The rank is blocked in I/O: look at the storage or file system (a full disk, a mount that does not "
        "answer, a pipe that nobody reads).",
        "A lock or a dead data-loader worker looks the same: look at its Python stack above."};
  }
  if (sleeps_in(p, {"nanosleep", "sleep"})) {
    return {
        "The rank sleeps (`time.sleep`, or a loop that waits for a file, a port or another process and never "
        "sees it): look at the function above, give it a time-out, and wait on all ranks alike.",
    };
  }
  return {
      "The rank waits for a lock, a queue or a worker that never answers: a deadlock on the host. Look at "
      "the function above: a dead "
      "data-loader worker, a lock held across fork, a stale build lock file.",
      "With data-loader workers try `num_workers=0` once, or a loader time-out, to see whether they are the "
      "cause."};
}

}  // namespace dshang::detect
