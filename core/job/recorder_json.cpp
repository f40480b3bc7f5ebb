#include "core/job/recorder_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace dshang::job {
namespace {

using Kind = RecorderValue::Kind;

// What nlohmann's parser calls; its names (https://json.nlohmann.me/features/parsing/sax_interface/).
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  RecorderTree take() { return std::move(tree_); }

  bool null() override { return value(RecorderTree::of(Kind::kNone)); }
  bool boolean(bool is) override { return value(RecorderTree::of(is ? Kind::kTrue : Kind::kFalse)); }
  bool number_integer(number_integer_t number) override { return value(RecorderTree::integer(number)); }
  bool number_unsigned(number_unsigned_t number) override {
    return value(
        RecorderTree::integer(static_cast<std::int64_t>(std::min<std::uint64_t>(number, INT64_MAX))));
  }
  bool number_float(number_float_t number, const string_t&) override {
    return value(RecorderTree::real(number));
  }
  bool string(string_t& text) override { return value(tree_.own_text(text)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Kind::kDictionary); }
  bool key(string_t& text) override {
    stack_.push_back(tree_.own_text(text));
    return true;
  }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(Kind::kList); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t at, const std::string&, const nlohmann::detail::exception&) override {
    throw std::runtime_error("byte " + std::to_string(at) + " of the JSON: it is not well-formed");
  }

 private:
  bool value(const RecorderValue& value) {
    if (open_.empty()) {
      tree_.root = value;
    } else {
      stack_.push_back(value);
    }
    return true;
  }

  bool open(Kind kind) {
    open_.push_back({tree_.container(kind), stack_.size()});
    return true;
  }

  bool close() {
    Open done = open_.back();
    open_.pop_back();
    tree_.append(done.container, std::span(stack_).subspan(done.from));
    stack_.resize(done.from);
    return value(done.container);
  }

  struct Open {
    RecorderValue container;
    std::size_t from;
  };
  RecorderTree tree_;
  std::vector<RecorderValue> stack_;
  std::vector<Open> open_;
};

}  // namespace

RecorderTree read_recorder_json(std::string_view text) {
  Builder builder;
  nlohmann::json::sax_parse(text, &builder);
  return builder.take();
}

}  // namespace dshang::job
