#include "core/job/report_html.h"

#include "core/job/html/parts.h"
#include "core/job/page_data.h"
#include "core/job/version.h"

namespace dshang::job {
namespace {

// JSON inside a script element: no `<` may be left, as "</script>" and "<!--" end or change it.  A `<` can
// only stand in a string there.
std::string inside_script(const std::string& json) {
  std::string out;
  out.reserve(json.size());
  for (char c : json) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

std::string data_text(const PageJson& data) {
  return inside_script(data.dump(-1, ' ', false, PageJson::error_handler_t::replace));
}

std::string scripts() {
  std::string text;
  for (const html::Part* part = html::parts; !part->name.empty(); ++part) {
    if (part->name.ends_with(".js")) text += part->text;
  }
  return text;
}

std::string_view part(std::string_view name) {
  for (const html::Part* part = html::parts; !part->name.empty(); ++part) {
    if (part->name == name) return part->text;
  }
  return {};
}

struct Filling {
  std::string_view mark;
  std::string text;
};

// Each mark of the template stands in it once, in this order; what is filled in is not looked at again.
std::string fill(std::string_view page, const std::vector<Filling>& fillings) {
  std::string out;
  for (const Filling& filling : fillings) {
    std::size_t at = page.find(filling.mark);
    if (at == page.npos) continue;
    out += page.substr(0, at);
    out += filling.text;
    page.remove_prefix(at + filling.mark.size());
  }
  out += page;
  return out;
}

}  // namespace

std::string html_of(const Job& job, const Report& report) {
  JobView view = make_view(job);
  return fill(part("page.html"), {{"{{style}}", std::string(part("style.css"))},
                                  {"{{report}}", inside_script(json_of(report))},
                                  {"{{records}}", data_text(page_data(view, report))},
                                  {"{{script}}", scripts()}});
}

}  // namespace dshang::job
