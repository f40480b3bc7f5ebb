#include "core/job/divergence.h"
#include "made.h"

using namespace dshang::job;

namespace {

std::optional<Visible> visible_of(const Job& job) {
  JobView view = make_view(job);
  REQUIRE(view.comms.size() == 1);
  return find_visible(view, view.comms[0]);
}

const std::string kGather = "call all_gather 100 bf16\n";

}  // namespace

TEST_CASE("ranks at different speeds agree as far as both have come", "[visible]") {
  auto job = made(rank(0, 2, repeat(50, kGather)) + rank(1, 2, repeat(7, kGather)));
  CHECK_FALSE(visible_of(*job));
}

TEST_CASE("the first call whose arguments differ counts, not the later ones", "[visible]") {
  std::string odd = "call all_gather 7 bf16 queued\n";
  auto job = made(rank(0, 3, repeat(9, kGather)) + rank(1, 3, repeat(4, kGather) + odd + odd) + rank(2, 3, repeat(9, kGather)));
  auto visible = visible_of(*job);
  REQUIRE(visible);
  CHECK(visible->kind == Visible::Kind::kArguments);
  CHECK(visible->call == 5);
}

TEST_CASE("each argument that has to agree is compared, and only where it matters", "[visible]") {
  auto differs = [](const std::string& a, const std::string& b) {
    auto job = made(rank(0, 2, a) + rank(1, 2, b));
    auto visible = visible_of(*job);
    return visible && visible->kind == Visible::Kind::kArguments;
  };
  CHECK(differs("call all_gather 8 bf16\n", "call reduce_scatter 8 bf16 sum\n"));
  CHECK(differs("call all_gather 8 bf16\n", "call all_gather 8 f32\n"));
  CHECK(differs("call all_reduce 8 f32 sum\n", "call all_reduce 8 f32 max\n"));
  CHECK(differs("call broadcast 8 f32 root=0\n", "call broadcast 8 f32 root=1\n"));
  CHECK_FALSE(differs("call all_gather 8 f32 root=0\n", "call all_gather 8 f32 root=1\n"));
  CHECK_FALSE(differs("call all_reduce 8 f32 sum stream=1\n", "call all_reduce 8 f32 sum stream=2\n"));
}

TEST_CASE("a member is missing only where another waits", "[visible]") {
  auto running = made(rank(0, 2, repeat(3, kGather)) + rank(1, 2, repeat(2, kGather)));
  CHECK_FALSE(visible_of(*running));
  auto waiting = made(rank(0, 2, repeat(2, kGather) + "call all_gather 100 bf16 queued\n") + rank(1, 2, repeat(2, kGather)));
  auto visible = visible_of(*waiting);
  REQUIRE(visible);
  CHECK(visible->kind == Visible::Kind::kMissing);
  CHECK(visible->call == 3);
}

TEST_CASE("a call that NCCL rejected is not counted", "[visible]") {
  auto job = made(rank(0, 2, kGather + "call all_gather 5 bf16 failed number=2\ncall all_gather 100 bf16 number=2\n") +
                  rank(1, 2, kGather + kGather));
  CHECK_FALSE(visible_of(*job));
}

TEST_CASE("calls that the ring has overwritten are left out", "[visible]") {
  // Rank 1's first ten calls are gone; what is left agrees.
  std::string late = "first calls=10\n";
  for (int number = 11; number <= 14; ++number) late += "call all_gather 100 bf16 number=" + std::to_string(number) + "\n";
  auto job = made(rank(0, 2, repeat(10, "call all_gather 3 bf16\n") + repeat(4, kGather)) + rank(1, 2, late));
  CHECK_FALSE(visible_of(*job));
}

TEST_CASE("sub-communicators are compared among their members only", "[visible]") {
  auto member = [](int rank, int group, const std::string& calls) {
    return "rank " + std::to_string(rank) + " pid " + std::to_string(100 + rank) + " world 4\ncomm world\ncomm pair" +
           std::to_string(group) + " origin=split id=pair" + std::to_string(group) + " parent=world rank=" +
           std::to_string(rank % 2) + " size=2 color=" + std::to_string(group) + "\n" + calls + "\n";
  };
  std::string fast = repeat(9, "call all_reduce 5 f32 sum comm=pair0\n"), slow = repeat(3, "call all_reduce 6 f32 sum comm=pair1\n");
  auto job = made(member(0, 0, fast) + member(1, 0, fast) + member(2, 1, slow) + member(3, 1, slow));
  JobView view = make_view(*job);
  CHECK(view.comms.size() == 3);
  for (const CommView& comm : view.comms) CHECK_FALSE(find_visible(view, comm));
}
