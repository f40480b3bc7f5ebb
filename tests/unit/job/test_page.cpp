// What report.html is made from: classes of ranks, lists side by side, the calls that are chosen, merged
// stacks.
#include <algorithm>

#include "core/job/page_data.h"
#include "core/job/report_html.h"
#include "core/job/shown_calls.h"
#include "core/job/stack_tree.h"
#include "made.h"

using namespace dshang::job;

namespace {

const std::string kGather = "call all_gather 100 bf16\n", kWait = "call all_gather 100 bf16 queued\n";

Report suspecting(Rank suspect) {
  Report report;
  Finding f;
  f.type = "argument-mismatch";
  f.suspects = {suspect};
  f.comm = "world";
  f.call = 40;
  report.findings.push_back(f);
  return report;
}

}  // namespace

TEST_CASE("ranks in equal state are one class, the suspect's comes first", "[page]") {
  auto job = made(rank(0, 4, kGather + kWait) + rank(1, 4, kGather + kWait) + rank(2, 4, kGather) +
                  rank(3, 4, kGather + "call all_gather 7 bf16 queued\n"));
  JobView view = make_view(*job);
  std::vector<RankClass> classes = rank_classes(view, suspecting(3));
  REQUIRE(classes.size() == 3);
  CHECK(classes[0].members == std::vector<std::size_t>{3});
  CHECK(classes[1].members == std::vector<std::size_t>{0, 1});
  CHECK(classes[1].state.doing == RankState::Doing::kWaits);
  CHECK(classes[2].state.doing == RankState::Doing::kOnHost);
}

TEST_CASE("a list shows the calls before the parting, and as many members as differ", "[page]") {
  std::string text;
  for (int r = 0; r < 20; ++r) {
    std::string others = "call all_gather " + std::to_string(r) + " bf16 queued\n";
    text += rank(r, 40, repeat(39, kGather) + others);
  }
  for (int r = 20; r < 40; ++r) text += rank(r, 40, repeat(39, kGather) + kWait);
  auto job = made(text);
  JobView view = make_view(*job);
  std::vector<CallList> lists = call_lists(view, suspecting(19));
  REQUIRE(lists.size() == 1);
  CHECK(lists[0].from == 40 - kListBefore);
  CHECK(lists[0].to == 40);
  REQUIRE(lists[0].classes.size() == kClassesListed);
  CHECK(lists[0].classes_left_out == 21 - kClassesListed);
  CHECK(lists[0].classes[0].members.size() == 20);
  CHECK(lists[0].classes[1].members == std::vector<std::size_t>{19});
}

TEST_CASE("calls are chosen within a budget, those of the lists in any case", "[page]") {
  std::string text;
  for (int r = 0; r < 400; ++r) text += rank(r, 400, repeat(250, kGather) + (r == 7 ? "" : kWait));
  auto job = made(text);
  JobView view = make_view(*job);
  Report report = suspecting(7);
  report.findings[0].call = 100;  // long past
  std::vector<RankClass> classes = rank_classes(view, report);
  std::vector<CallList> lists = call_lists(view, report);
  std::vector<ShownRank> shown = choose_calls(view, report, classes, lists);
  std::size_t all = 0;
  for (std::size_t r = 0; r < shown.size(); ++r) {
    all += shown[r].calls.size();
    CHECK(shown[r].calls.size() + shown[r].left_out == view.ranks[r].records().calls.size());
    CHECK(std::is_sorted(shown[r].calls.begin(), shown[r].calls.end()));
    CHECK(std::count(shown[r].calls.begin(), shown[r].calls.end(), view.ranks[r].records().calls.end() - 1) ==
          1);
  }
  CHECK(all < kCallsShown + 48 * kListLongest);
  for (std::size_t r : {std::size_t{0}, std::size_t{7}}) {
    for (Seq k = lists[0].from; k <= std::min<Seq>(lists[0].to, 250); ++k)
      CHECK(std::count(shown[r].calls.begin(), shown[r].calls.end(), k - 1) == 1);
  }
}

TEST_CASE("stacks are merged from the outermost frame", "[page]") {
  auto job =
      made(rank(0, 3, "call all_gather 1 f32 queued site=\"a.py:3 f | a.py:2 main\"\n") +
           rank(1, 3, "call all_gather 1 f32 queued site=\"a.py:4 g | a.py:2 main\"\n") +
           rank(2, 3, kGather + "stack 102 site=\"lock.py:9 wait | a.py:3 f | a.py:2 main\" at=0.5\n"));
  StackTree tree = main_threads(make_view(*job));
  REQUIRE(tree.outermost().size() == 1);
  const StackNode& main = tree.outermost()[0];
  CHECK(main.ranks == std::vector<Rank>{0, 1, 2});
  REQUIRE(main.inner.size() == 2);
  CHECK(main.inner[0].ranks == std::vector<Rank>{0, 2});
  CHECK(main.inner[0].call_here == std::vector<Rank>{0});
  CHECK(main.inner[0].inner[0].end_here == std::vector<Rank>{2});
}

TEST_CASE("frames that are not the user's are marked, the simulator's too", "[page]") {
  auto job = made(rank(0, 1,
                       "call all_gather 1 f32 queued site=\"simgpu_numerics/mode.py:30 __torch_function__ | "
                       "train.py:3 main\"\n"));
  PageTexts texts;
  PageJson main = page_stacks(make_view(*job), texts)["main"];
  CHECK(main[0][5] == false);
  CHECK(main[0][4][0][5] == true);
}

TEST_CASE("equal ranks have the same usual step, however long they took before the first", "[page]") {
  std::string steps, before;
  for (int step = 1; step < 5; ++step) {
    steps += "visit step " + std::to_string(step) + "\nmemory step=" + std::to_string(step - 1) +
             " device=4000 allocated_peak=" + std::to_string(step == 3 ? 3100000 : 3000000) + "\n";
  }
  for (int second = 0; second < 9; ++second) before += "memory step=- device=2000 allocated_peak=2000000\n";
  auto job = made(rank(0, 2, steps) + rank(1, 2, before + steps));
  PageTexts texts;
  JobView view = make_view(*job);
  PageSites sites(view.names(), texts);
  PageJson ranks = page_memory(view, texts, sites);
  REQUIRE(ranks.size() == 2);
  CHECK(ranks[0]["usual"] == ranks[1]["usual"]);
  CHECK(ranks[0]["usual"] == 3000000 / 1024);
}

TEST_CASE("a page leaves no text of the job in its markup", "[page]") {
  auto job = made(rank(0, 1, "visit module_enter \"</script><!--\"\n" + kWait));
  job->journal.dir = "</script>";
  std::string page = html_of(*job, Report{});
  CHECK(page.find("</script><!--") == page.npos);
  CHECK(page.find("\\u003c/script>\\u003c!--") != page.npos);
  CHECK(page.find("{{") == page.npos);
  std::string long_name(3000, 'x');
  PageTexts texts;
  texts.number_of(long_name);
  CHECK(texts.take()[1].get<std::string>().size() < 1000);
}
