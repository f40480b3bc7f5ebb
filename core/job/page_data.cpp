#include "core/job/page_data.h"

#include <algorithm>

#include "core/job/shown_calls.h"

namespace dshang::job {
namespace {

// What the page colours and filters by.
enum class Progress { kDone, kWaits, kReturned, kFailed, kInOpenGroup };

Progress progress_of(const RankView& rank, const Call& call) {
  if (call.flags & flight::kCallFailed) return Progress::kFailed;
  if (is_done(call)) return Progress::kDone;
  if (is_held_back(call)) return Progress::kInOpenGroup;
  return waits_in(rank, call) ? Progress::kWaits : Progress::kReturned;
}

PageJson ranks_json(const JobView& view, const std::vector<std::size_t>& members) {
  std::vector<Rank> ranks;
  for (std::size_t member : members) ranks.push_back(view.ranks[member].rank);
  return list_of(ranks);
}

class Page {
 public:
  Page(const JobView& view, const Report& report)
      : view_(view), report_(report), sites_(view.names(), texts_) {}
  PageJson json();

 private:
  std::size_t text(NameId name) { return texts_.number_of(view_.names().text(name)); }
  std::size_t text(const char* word) { return texts_.number_of(word ? word : ""); }
  PageJson rank_json(std::size_t r, const ShownRank& shown);
  PageJson call_json(const RankView& rank, const Call& call);
  PageJson class_json(const RankClass& one);
  PageJson list_json(const CallList& list);

  const JobView& view_;
  const Report& report_;
  PageTexts texts_;
  PageSites sites_;
  std::unordered_map<std::uint64_t, std::size_t> comm_numbers_;  // by id; index into "comms"
};

// [comm, number, op, count, dtype, reduce op, root or peer, step, phase, module, site, enter, end, started,
// progress]; times but `enter` count from `enter`.
PageJson Page::call_json(const RankView& rank, const Call& call) {
  const auto& comms = rank.records().comms;
  auto comm = call.comm < comms.size() ? comm_numbers_.find(comms[call.comm].id) : comm_numbers_.end();
  auto after = [&](std::uint64_t ns) {
    return ns < call.enter_ns ? PageJson(nullptr) : PageJson((ns - call.enter_ns) / 1000);
  };
  Progress progress = progress_of(rank, call);
  std::uint64_t end = is_done(call) ? call.done_ns : progress == Progress::kReturned ? call.return_ns : 0;
  return {comm == comm_numbers_.end() ? PageJson(nullptr) : PageJson(comm->second),
          call.number,
          texts_.number_of(view_.op_name(rank, call)),
          call.count,
          text(job::text_of(call.dtype)),
          text(job::text_of(call.reduce_op)),
          call.root_or_peer,
          page_step(call.step),
          text(call.phase),
          text(call.module),
          sites_.number_of(call.site),
          page_time(view_, call.enter_ns),
          after(end),
          after(call.started_ns),
          static_cast<int>(progress)};
}

PageJson Page::rank_json(std::size_t r, const ShownRank& shown) {
  const RankView& rank = view_.ranks[r];
  PageJson calls = PageJson::array();
  for (std::uint64_t n : shown.calls) calls.push_back(call_json(rank, rank.records().calls.at(n)));
  std::uint64_t died = rank.alive() ? 0 : rank.journal().death->time_ns;
  return {{"rank", rank.rank},
          {"host", texts_.number_of(rank.records().host)},
          {"pid", rank.records().pid},
          {"ending", texts_.number_of(ending_text(rank))},
          {"ended", page_time(view_, died)},
          {"left_out", shown.left_out},
          {"calls", std::move(calls)}};
}

PageJson Page::class_json(const RankClass& one) {
  const RankView& first = view_.ranks[one.members.front()];
  const RankState& state = one.state;
  return {{"ranks", ranks_json(view_, one.members)},
          {"size", one.members.size()},
          {"first", first.rank},
          {"doing", text(job::text_of(state.doing))},
          {"ending", texts_.number_of(ending_text(first))},
          {"step", page_step(state.step)},
          {"phase", text(state.phase)},
          {"module", text(state.module)},
          {"site", sites_.number_of(state.site)},
          {"stack", state.site_is_stack},
          {"since", page_time(view_, state.since_ns)},
          {"call", state.call ? call_json(first, *state.call) : PageJson(nullptr)}};
}

PageJson Page::list_json(const CallList& list) {
  PageJson classes = PageJson::array();
  for (const CallList::Class& one : list.classes) {
    std::vector<Rank> ranks;
    for (std::size_t m : one.members) ranks.push_back(list.comm->members[m].rank);
    std::sort(ranks.begin(), ranks.end());
    const Member& first = list.comm->members[one.members.front()];
    classes.push_back({{"ranks", list_of(ranks)},
                       {"size", ranks.size()},
                       {"first", first.rank},
                       {"known_from", first.first},
                       {"last", first.last()}});
  }
  PageJson finding;
  if (list.finding) finding = list.finding - report_.findings.data();
  return {{"comm", comm_numbers_.at(list.comm->id)},
          {"from", list.from},
          {"to", list.to},
          {"finding", std::move(finding)},
          {"classes", std::move(classes)},
          {"classes_left_out", list.classes_left_out}};
}

PageJson Page::json() {
  PageJson comms = PageJson::array();
  for (const CommView& comm : view_.comms) {
    comm_numbers_.emplace(comm.id, comms.size());
    std::vector<Rank> ranks = comm.ranks();
    std::sort(ranks.begin(), ranks.end());
    comms.push_back({{"name", comm.name}, {"size", comm.size}, {"ranks", list_of(ranks)}});
  }
  std::vector<RankClass> classes = rank_classes(view_, report_);
  std::vector<CallList> lists = call_lists(view_, report_);
  std::vector<ShownRank> shown = choose_calls(view_, report_, classes, lists);
  PageJson page{{"now", page_time(view_, view_.now_ns())},
                {"attempt", view_.job->journal.attempt},
                {"comms", std::move(comms)},
                {"ranks", PageJson::array()},
                {"classes", PageJson::array()},
                {"lists", PageJson::array()}};
  for (std::size_t r = 0; r < view_.ranks.size(); ++r) page["ranks"].push_back(rank_json(r, shown[r]));
  for (const RankClass& one : classes) page["classes"].push_back(class_json(one));
  for (const CallList& list : lists) page["lists"].push_back(list_json(list));
  std::size_t with_calls = std::count_if(view_.comms.begin(), view_.comms.end(), [](const CommView& comm) {
    return std::any_of(comm.members.begin(), comm.members.end(),
                       [](const Member& member) { return !member.calls.empty(); });
  });
  page["lists_left_out"] = with_calls - lists.size();
  page["stacks"] = page_stacks(view_, texts_);
  page["memory"] = page_memory(view_, texts_, sites_);
  page["sites"] = sites_.take();
  page["texts"] = texts_.take();
  return page;
}

}  // namespace

std::size_t PageTexts::number_of(const std::string& text) {
  constexpr std::size_t kLongest = 500;  // bytes; where that cuts a letter, JSON gets a replacement for it
  auto [at, is_new] = numbers_.try_emplace(text, texts_.size());
  if (is_new) texts_.push_back(text.size() <= kLongest ? text : text.substr(0, kLongest) + "…");
  return at->second;
}

std::size_t PageSites::number_of(SiteId id) {
  auto [at, is_new] = numbers_.try_emplace(id, sites_.size());
  if (!is_new) return at->second;
  PageJson frames = PageJson::array();
  const Site* site = id ? &names_.site(id) : nullptr;
  for (std::size_t i = 0; site && i < site->frames.size(); ++i)
    frames.push_back(texts_.number_of(frame_text(names_, site->frames[i])));
  std::string place = site ? names_.place_text(site->place) : "";
  sites_.push_back({texts_.number_of(place), std::move(frames)});
  return at->second;
}

std::string frame_text(const Names& names, const FrameName& frame) {
  std::string file = frame.file ? names.text(frame.file) : "?";
  return file + ":" + std::to_string(frame.line) + (frame.function ? " " + names.text(frame.function) : "");
}

PageJson page_time(const JobView& view, std::uint64_t ns) {
  std::uint64_t start = view.job->journal.start_ns;
  return ns == 0 ? PageJson(nullptr) : PageJson(ns <= start ? 0 : (ns - start) / 1000);
}

PageJson page_step(std::int64_t step) { return step == kNoStep ? PageJson(nullptr) : PageJson(step); }

PageJson page_data(const JobView& view, const Report& report) { return Page(view, report).json(); }

}  // namespace dshang::job
