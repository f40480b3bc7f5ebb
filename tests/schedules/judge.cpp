#include "judge.h"

#include <algorithm>
#include <map>
#include <set>

namespace dshang::schedules {
namespace {

using dshang::job::Finding;
using dshang::job::Severity;

const Finding* main_finding(const Watched& watched, const Fault& fault) {
  bool is_info = fault.type == "straggler" || fault.type == "host-stall";
  const Finding* info = nullptr;
  for (const Finding& finding : watched.report.findings) {
    if (finding.resolved || finding.consequence_of) continue;
    if (finding.severity != Severity::kInfo) return &finding;
    if (!info) info = &finding;
  }
  return is_info ? info : nullptr;
}

using Calls = std::vector<const CallTimes*>;

// The collectives of a member of the communicator that were made, in order.
Calls collectives(const History& history, int rank, int comm) {
  Calls calls;
  for (const CallTimes& call : history.ranks[static_cast<std::size_t>(rank)].calls) {
    const Instruction& one = *call.instruction;
    bool message = one.op == Op::kSend || one.op == Op::kRecv;
    bool made = call.enter <= history.ranks[static_cast<std::size_t>(rank)].mishap ||
                history.ranks[static_cast<std::size_t>(rank)].mishap == kNever;
    if (!message && one.comm == comm && made) calls.push_back(&call);
  }
  return calls;
}

bool same_arguments(const Instruction& a, const Instruction& b) {
  return a.op == b.op && a.count == b.count && a.dtype == b.dtype && a.reduce_op == b.reduce_op &&
         a.root == b.root;
}

// Where the user's program stood, "" = no line of the user's is on the stack, or none is recorded.
std::string line_of(const Job& job, const Instruction& one) {
  if (!job.recorded.sites || one.site < 0) return "";
  const Site& site = job.sites[static_cast<std::size_t>(one.site)];
  for (const Frame& frame : site) {
    if (frame.file.find("site-packages") == frame.file.npos)
      return frame.file + ":" + std::to_string(frame.line) + " " + frame.function;
  }
  return "";
}

bool recorded_purposes_differ(const Job& job, const CallTimes& a, const CallTimes& b) {
  const Recorded& r = job.recorded;
  if (r.steps && a.step != b.step) return true;
  if (r.phases && a.phase >= 0 && b.phase >= 0 && a.phase != b.phase) return true;
  if (r.modules && a.module >= 0 && b.module >= 0 && a.module != b.module) return true;
  std::string mine = line_of(job, *a.instruction), theirs = line_of(job, *b.instruction);
  return !mine.empty() && !theirs.empty() && mine != theirs;
}

struct Parting {
  std::uint64_t really = 0;    // first call made for another purpose, 0 = none
  std::uint64_t provably = 0;  // the first such of which something recorded shows it
};

Parting parting_of(const Job& job, const History& history, int comm) {
  std::vector<Calls> all;
  std::size_t longest = 0;
  for (int rank : job.comms[static_cast<std::size_t>(comm)].ranks) {
    all.push_back(collectives(history, rank, comm));
    longest = std::max(longest, all.back().size());
  }
  Parting parting;
  for (std::size_t k = 0; k < longest; ++k) {
    for (const Calls& a : all) {
      for (const Calls& b : all) {
        if (k >= a.size() || k >= b.size() || a[k]->instruction->purpose == b[k]->instruction->purpose)
          continue;
        if (!parting.really) parting.really = k + 1;
        bool shown = !same_arguments(*a[k]->instruction, *b[k]->instruction) ||
                     recorded_purposes_differ(job, *a[k], *b[k]);
        if (shown) {
          parting.provably = k + 1;
          return parting;
        }
      }
    }
  }
  return parting;
}

void judge_origin(const Job& job, const History& history, const Watched& watched, const Finding& finding,
                  Verdict& verdict) {
  if (!finding.comm) return;
  auto at = std::find(watched.comm_names.begin(), watched.comm_names.end(), *finding.comm);
  if (at == watched.comm_names.end()) return;  // a pair of sends and receives
  Parting parting = parting_of(job, history, static_cast<int>(at - watched.comm_names.begin()));
  verdict.agreed_too_far = parting.really && finding.agreed_until && *finding.agreed_until >= parting.really;
  verdict.expected_origin = parting.provably ? std::to_string(parting.provably) : "none";
  if (!job.recorded.sites && !job.recorded.modules) return;
  if (parting.provably) {
    verdict.origin_right = finding.origin && *finding.origin == parting.provably;
  } else {
    verdict.origin_right = !finding.origin || finding.origin == finding.call;
  }
}

void judge_suspects(const Fault& fault, const Finding& finding, Verdict& verdict) {
  std::set<int> members(finding.comm_ranks.begin(), finding.comm_ranks.end());
  std::vector<int> mine;
  for (int rank : fault.suspects) {
    if (members.count(rank)) mine.push_back(rank);
  }
  bool majority = finding.comm_ranks.empty() || 2 * mine.size() < members.size();
  bool message = finding.comm && finding.comm->find("->") != finding.comm->npos;
  if (majority && !message && !mine.empty()) {
    // Those outside the communicator may be named too, where it is not the only one concerned.
    verdict.suspects_right =
        finding.suspects == fault.suspects || (!finding.comm_ranks.empty() && finding.suspects == mine);
  } else {
    verdict.suspects_wrong_in_tie = std::any_of(
        finding.suspects.begin(), finding.suspects.end(),
        [&](int rank) { return !std::count(fault.suspects.begin(), fault.suspects.end(), rank); });
  }
}

// The member's calls end with the first that differs: nothing tells how it goes on.
bool nothing_behind(const Job& job, const History& history, const Watched& watched, const Fault& fault,
                    const Finding& finding) {
  auto at = std::find(watched.comm_names.begin(), watched.comm_names.end(), finding.comm.value_or(""));
  if (at == watched.comm_names.end() || !finding.call) return false;
  int comm = static_cast<int>(at - watched.comm_names.begin());
  for (int rank : job.comms[static_cast<std::size_t>(comm)].ranks) {
    Calls calls = collectives(history, rank, comm);
    if (calls.size() > *finding.call) return false;
    bool suspect = std::count(fault.suspects.begin(), fault.suspects.end(), rank) > 0;
    const std::vector<CallTimes>& all = history.ranks[static_cast<std::size_t>(rank)].calls;
    if (suspect && !calls.empty() && calls.back() != &all.back()) return false;
  }
  return true;
}

// The suspects have made no call since.
bool suspects_stand(const Job& job, const History& history, const Watched& watched, const Fault& fault,
                    const Finding& finding) {
  auto at = std::find(watched.comm_names.begin(), watched.comm_names.end(), finding.comm.value_or(""));
  if (at == watched.comm_names.end() || !finding.call) return false;
  int comm = static_cast<int>(at - watched.comm_names.begin());
  return std::all_of(fault.suspects.begin(), fault.suspects.end(), [&](int rank) {
    if (job.position(comm, rank) == job.comms[static_cast<std::size_t>(comm)].ranks.size()) return true;
    const std::vector<CallTimes>& all = history.ranks[static_cast<std::size_t>(rank)].calls;
    Calls calls = collectives(history, rank, comm);
    return !calls.empty() && calls.size() <= *finding.call && calls.back() == &all.back();
  });
}

// Whether the rank's first call that was made for another purpose than that of a rank without the mistake, at
// the same number of the communicator, is its last of all.
bool stands_in_one_call(const Job& job, const History& history, const Fault& fault, int rank) {
  const std::vector<CallTimes>& all = history.ranks[static_cast<std::size_t>(rank)].calls;
  bool stands = false;
  for (std::size_t c = 0; c < job.comms.size(); ++c) {
    Calls mine = collectives(history, rank, static_cast<int>(c));
    for (int other : job.comms[c].ranks) {
      if (std::count(fault.suspects.begin(), fault.suspects.end(), other)) continue;
      Calls theirs = collectives(history, other, static_cast<int>(c));
      for (std::size_t k = 0; k < std::min(mine.size(), theirs.size()); ++k) {
        if (mine[k]->instruction->purpose == theirs[k]->instruction->purpose) continue;
        if (mine[k] != &all.back()) return false;
        stands = true;
        break;
      }
    }
  }
  return stands;
}

bool stand_in_one_call(const Job& job, const History& history, const Fault& fault) {
  return std::all_of(fault.suspects.begin(), fault.suspects.end(),
                     [&](int rank) { return stands_in_one_call(job, history, fault, rank); });
}

// Classes that are right as well by the contract's definitions, seen from what is recorded; docs/schedules.md
// has the table.
bool is_right_as_well(const Job& job, const Fault& fault, const Finding& finding, bool nothing_behind,
                      bool suspects_stand) {
  const Recorded& r = job.recorded;
  const std::string& told = finding.type;
  bool of_pair = finding.comm && finding.comm->find("->") != finding.comm->npos;
  bool leaves_calls = fault.type != "rank-dead" && fault.type != "host-stall" &&
                      fault.type != "rank-frozen" && fault.type != "straggler" &&
                      fault.type != "site-mismatch";
  // Sends and receives are numbered by pair: where one is left out, the next ones meet.
  if (of_pair && leaves_calls && (told == "p2p-unmatched" || told == "argument-mismatch")) return true;
  // Ranks do wait for each other across communicators, whatever led to it.
  if (leaves_calls && job.comms.size() > 1 && told == "comm-order-cycle") return true;
  // Left out, or taken later: nothing that was recorded shows it.
  if (fault.type == "order-differs" && told == "module-skipped" && nothing_behind) return true;
  if (fault.type == "module-skipped" && told == "order-differs" && nothing_behind) return true;
  if (fault.type == "uneven-steps" && told == "early-return" && !r.modules) return true;
  bool leaves_loop = fault.type == "uneven-steps" || fault.how == "break";
  if (leaves_loop && told == "repeat-count-differs" && !r.steps) return true;
  // A call from a line that nobody called from, with nothing behind it: behind the loop, or behind a
  // condition.
  bool own_call = fault.how == "log added" || fault.how == "save added";
  bool lines_say_no_more =
      (nothing_behind || (suspects_stand && !r.steps)) && !(fault.how == "save added" && r.phases);
  if (leaves_loop && told == "rank-conditional-call" && lines_say_no_more && !r.modules) return true;
  if (own_call && told == "early-return" && lines_say_no_more) return true;
  // Equal layers called from one line are rounds.
  return fault.type == "module-skipped" && told == "repeat-count-differs" && !r.modules;
}

bool parts_purposes(const std::string& type) {
  static const std::set<std::string> types = {
      "argument-mismatch",     "order-differs",        "module-skipped",
      "backward-skipped",      "uneven-steps",         "early-return",
      "rank-conditional-call", "repeat-count-differs", "site-mismatch"};
  return types.count(type) > 0;
}

}  // namespace

Verdict judge(const Job& job, const History& history, const Fault& fault, const Watched& watched) {
  Verdict verdict;
  const Finding* finding = main_finding(watched, fault);
  for (const Said& said : watched.said) {
    bool right = std::count(fault.allowed.begin(), fault.allowed.end(), said.type) > 0;
    if (!right && said.severity == Severity::kHang) verdict.said_otherwise = said.type;
  }
  if (!finding) {
    verdict.told = watched.shown || fault.silent ? "nothing" : "nothing to see";
    return verdict;
  }
  verdict.told = finding->type;
  verdict.class_right = std::count(fault.allowed.begin(), fault.allowed.end(), finding->type) > 0;
  bool no_more = nothing_behind(job, history, watched, fault, *finding);
  verdict.class_right =
      verdict.class_right ||
      is_right_as_well(job, fault, *finding, no_more, suspects_stand(job, history, watched, fault, *finding));
  bool no_purposes = !job.recorded.sites && !job.recorded.steps;
  verdict.undecidable = parts_purposes(fault.type) && fault.type != "argument-mismatch" && no_purposes &&
                        stand_in_one_call(job, history, fault);
  judge_suspects(fault, *finding, verdict);
  if (parts_purposes(fault.type)) judge_origin(job, history, watched, *finding, verdict);
  return verdict;
}

}  // namespace dshang::schedules
