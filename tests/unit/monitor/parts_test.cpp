#include "monitor/parts.h"

#include <new>
#include <stdexcept>

#include "catch.h"
#include "detectors/registry.h"
#include "detectors/run.h"

using namespace dshang;
using namespace dshang::monitor;

TEST_CASE("a part that fails is told once, and the next one runs") {
  Parts parts;
  int ran = 0;
  for (int round = 0; round < 3; ++round) {
    CHECK_FALSE(parts.run("the first", [] { throw std::runtime_error("bad record"); }));
    CHECK_FALSE(parts.run("the second", [] { throw std::bad_alloc(); }));
    CHECK(parts.run("the third", [&] { ++ran; }));
  }
  CHECK(ran == 3);
  std::vector<std::string> news = parts.take_news();
  REQUIRE(news.size() == 2);
  CHECK(news[0] == "the first failed: bad record");
  CHECK(news[1].find("the second failed: ") == 0);
  CHECK(parts.take_news().empty());
}

TEST_CASE("failures that are told differently each time do not fill the log") {
  Parts parts;
  for (int i = 0; i < 100; ++i) parts.run("it", [i] { throw std::runtime_error(std::to_string(i)); });
  CHECK(parts.take_news().size() < 20);
}

TEST_CASE("a detector that fails takes nothing from the others") {
  auto& detectors = detect::Registry::detectors();
  const auto before = detectors;
  detectors.push_back({1, "broken", [](detect::Work&) { throw std::runtime_error("out of range"); }});
  detectors.push_back({2, "whole", [](detect::Work& work) {
                         detect::Finding f;
                         f.type = "whole";
                         work.findings.push_back(f);
                       }});
  job::Analysis analysis = detect::analyse(job::Job());
  detectors = before;
  REQUIRE(analysis.findings.size() == 1);
  CHECK(analysis.findings[0].type == "whole");
  REQUIRE(analysis.not_checked.size() == 1);
  CHECK(analysis.not_checked[0] == "broken: the detector failed: out of range");
}
