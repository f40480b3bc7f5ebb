#include "results.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <ostream>
#include <sstream>

#include "faults.h"

namespace dshang::schedules {
namespace {

std::string share_text(const Share& share) {
  if (!share.all) return "-";
  char text[64];
  std::snprintf(text, sizeof text, "%d/%d (%.1f %%)", share.right, share.all, share.percent());
  return text;
}

void add(Totals& totals, const Result& one) {
  if (one.healthy) {
    ++totals.healthy;
    totals.false_alarms += one.told != "nothing";
    return;
  }
  if (one.told == "nothing to see") {
    ++totals.nothing_to_see;
    return;
  }
  totals.missed += one.told == "nothing";
  if (one.undecidable) {
    ++totals.undecidable;
  } else {
    totals.classes.add(one.right);
  }
  if (one.suspects >= 0) totals.suspects.add(one.suspects == 1);
  if (one.origin >= 0) totals.origins.add(one.origin == 1);
  totals.wrong_in_tie += one.wrong_in_tie;
  totals.agreed_too_far += one.agreed_too_far;
}

void print_row(std::ostream& out, const std::string& name, const Totals& t) {
  out << "| " << name << " | " << share_text(t.classes) << " | " << share_text(t.suspects) << " | "
      << share_text(t.origins) << " | " << t.missed << " | " << t.nothing_to_see << " | " << t.undecidable
      << " | " << t.wrong_in_tie << " | " << t.agreed_too_far << " |\n";
}

void print_head(std::ostream& out, const std::string& name) {
  out << "\n| " << name
      << " | class right | suspects right | origin right | missed | nothing to see | class cannot be told | "
         "healthy rank named in a tie | "
         "`agreed_until` too far |\n|---|---|---|---|---|---|---|---|---|\n";
}

}  // namespace

std::string line_of(const Result& r) {
  std::ostringstream out;
  auto field = [&](const std::string& text) { out << text << '\t'; };
  field(r.shape), field(r.hosts), field(r.type), field(r.how), field(r.told), field(r.otherwise);
  out << r.healthy << ' ' << r.seed << ' ' << r.sites << ' ' << r.modules << ' ' << r.steps << ' ' << r.marks
      << ' ' << r.right << ' ' << r.suspects << ' ' << r.origin << ' ' << r.wrong_in_tie << ' '
      << r.agreed_too_far << ' ' << r.undecidable;
  return out.str();
}

bool read_line(const std::string& line, Result& r) {
  std::istringstream in(line);
  for (std::string* field : {&r.shape, &r.hosts, &r.type, &r.how, &r.told, &r.otherwise}) {
    if (!std::getline(in, *field, '\t')) return false;
  }
  in >> r.healthy >> r.seed >> r.sites >> r.modules >> r.steps >> r.marks >> r.right >> r.suspects >>
      r.origin >> r.wrong_in_tie >> r.agreed_too_far >> r.undecidable;
  return static_cast<bool>(in);
}

Totals print_tables(std::ostream& out, const std::vector<Result>& results) {
  Totals totals;
  std::map<std::string, Totals> by_type, by_recorded, by_shape, by_hosts;
  std::map<std::string, std::map<std::string, int>> told;
  for (const Result& one : results) {
    add(totals, one);
    if (one.healthy) continue;
    add(by_type[one.type], one);
    std::string recorded = one.modules ? "modules" : one.steps ? "markers" : "no markers";
    add(by_recorded[(one.sites ? "call sites, " : "no call sites, ") + recorded], one);
    add(by_shape[one.shape], one);
    add(by_hosts[one.hosts], one);
    ++told[one.type][one.told];
  }
  if (totals.healthy) {
    out << totals.healthy << " healthy jobs, findings in " << totals.false_alarms << "\n";
    for (const Result& one : results) {
      if (one.healthy && one.told != "nothing")
        out << "  seed " << one.seed << " (" << one.shape << "): " << one.told << "\n";
    }
  }
  if (!totals.classes.all && !totals.nothing_to_see) return totals;
  print_head(out, "injected");
  for (const auto& [name, t] : by_type) print_row(out, name, t);
  print_row(out, "all", totals);
  print_head(out, "recorded");
  for (const auto& [name, t] : by_recorded) print_row(out, name, t);
  print_head(out, "shape");
  for (const auto& [name, t] : by_shape) print_row(out, name, t);
  print_head(out, "hosts");
  for (const auto& [name, t] : by_hosts) print_row(out, name, t);
  out << "\ninjected: told\n";
  for (const auto& [type, counts] : told) {
    out << "  " << type << ":";
    for (const auto& [name, n] : counts) out << "  " << name << " " << n;
    out << "\n";
  }
  return totals;
}

}  // namespace dshang::schedules
