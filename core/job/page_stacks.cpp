#include "core/job/page_data.h"
#include "core/job/site_policy.h"
#include "core/job/stack_tree.h"

namespace dshang::job {
namespace {

constexpr std::size_t kNodesShown = 4000;

PageJson json_of(const Names& names, const std::vector<StackNode>& nodes, PageTexts& texts,
                 std::size_t* left) {
  PageJson list = PageJson::array();
  for (const StackNode& node : nodes) {
    if (*left == 0) break;
    --*left;
    list.push_back({texts.number_of(frame_text(names, node.frame)), list_of(node.ranks),
                    list_of(node.end_here), list_of(node.call_here),
                    json_of(names, node.inner, texts, left),
                    frame_owner(names.text(node.frame.file)) != FrameOwner::kUser});
  }
  return list;
}

}  // namespace

PageJson page_stacks(const JobView& view, PageTexts& texts) {
  std::size_t left = kNodesShown;
  PageJson main = json_of(view.names(), main_threads(view).outermost(), texts, &left);
  PageJson others = json_of(view.names(), other_threads(view).outermost(), texts, &left);
  return {{"main", std::move(main)}, {"others", std::move(others)}, {"is_whole", left > 0}};
}

}  // namespace dshang::job
